// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/lens"
)

// NewKubectl returns the verb kubectl.
func NewKubectl(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	return &cobra.Command{
		Use:   "kubectl [--name NAME] [KUBECTL ARGUMENT]...",
		Short: "Run kubectl on a cluster, without installing kubectl",
		Long: `Runs the kubectl that is built into the control plane binary, with KUBECONFIG set to the kubeconfig
of the cluster. All arguments are passed to kubectl unchanged, except a --name before the first
kubectl argument, which selects the cluster. If the arguments contain --kubeconfig or --context,
KUBECONFIG is not changed.

Without --name, the cluster is "dock" or $OPDOCK_CLUSTER, also in the directory of a project. The cluster
of "opdock dev" has the name of the project.

In a command that "opdock trace" runs, requests go through the trace, unless --name selects another cluster
than the traced one.

For the help of kubectl itself, run "opdock kubectl help".`,
		Example: `  opdock kubectl get nodes
  opdock kubectl create deployment web --image=nginx --replicas=3
  opdock kubectl --name other get pods -A --watch
  alias kubectl='opdock kubectl'`,
		// kubectl's flags are not ours to understand.
		DisableFlagParsing: true,
		ValidArgsFunction:  a.completeKubectl,
		RunE: func(cmd *cobra.Command, args []string) error {
			call, err := splitKubectl(args, a.DefaultName())
			if err != nil {
				return err
			}
			if call.ownHelp {
				return cmd.Help()
			}
			env := a.Env
			if traced := a.Getenv(lens.KubeconfigVariable); call.needsCluster && a.isTraced(call, traced) {
				env = withKubeconfig(env, traced)
			} else if call.needsCluster {
				c, err := a.Dock.Open(call.cluster)
				if err != nil {
					return err
				}
				env = withKubeconfig(env, c.Kubeconfig())
				a.tellProjectCluster(call)
			}
			binary, err := a.ControlPlaneBinary(cmd.Context(), false)
			if err != nil {
				return err
			}
			// The binary acts as kubectl if it has this name.
			if err := a.Exec(binary, append([]string{"kubectl"}, call.args...), env); err != nil {
				return fmt.Errorf("running %s as kubectl: %w", binary, err)
			}
			return nil
		},
	}
}

// isTraced reports whether the requests go through the lens with this kubeconfig, and tells if they bypass a trace.
func (a verbs) isTraced(call kubectlCall, kubeconfig string) bool {
	switch traced := cmdutil.TracedCluster(kubeconfig); {
	case kubeconfig == "":
		return false
	case !call.named || traced == call.cluster:
		return true
	case traced != "":
		fmt.Fprintf(a.Err, "! These requests are not traced: opdock trace runs on %s, and --name selects cluster %q.\n", traced, call.cluster)
	}
	return false
}

// tellProjectCluster tells a person who did not select a cluster that the project in this directory has another one.
func (a verbs) tellProjectCluster(call kubectlCall) {
	if call.named || a.ErrWidth == 0 || a.Getenv(cmdutil.ClusterVariable) != "" {
		return
	}
	here := a.ClusterHere()
	if here == "" || here == call.cluster {
		return
	}
	if s, err := a.Dock.Find(here); err == nil && s.State == cluster.Alive {
		fmt.Fprintf(a.Err, "Using cluster %q. To use the cluster of this project: %s\n", call.cluster, a.Command("kubectl", here))
	}
}

// kubectlCall is an opdock kubectl command line, understood.
type kubectlCall struct {
	cluster string   // the cluster that is meant
	named   bool     // whether --name says so
	args    []string // for kubectl, as they were written
	// needsCluster is false when the arguments name another kubeconfig, or ask for something kubectl does by itself.
	needsCluster bool
	ownHelp      bool // the user asks for the help of opdock kubectl, not of kubectl
}

func splitKubectl(args []string, defaultName string) (kubectlCall, error) {
	call := kubectlCall{cluster: defaultName, args: args}
	for len(call.args) > 0 {
		name, rest, found, err := cutNameFlag(call.args)
		if err != nil {
			return call, err
		}
		if !found {
			break
		}
		call.cluster, call.named, call.args = name, true, rest
	}
	call.ownHelp = len(call.args) == 1 && isHelpFlag(call.args[0])
	call.needsCluster = !choosesCluster(call.args) && !runsAlone(call.args)
	return call, nil
}

// cutNameFlag takes --name NAME or --name=NAME from the front of the arguments.
func cutNameFlag(args []string) (name string, rest []string, found bool, err error) {
	switch {
	case args[0] == "--name" && len(args) > 1:
		name, rest = args[1], args[2:]
	case args[0] == "--name":
	case strings.HasPrefix(args[0], "--name="):
		name, rest = strings.TrimPrefix(args[0], "--name="), args[1:]
	default:
		return "", args, false, nil
	}
	if name == "" {
		return "", nil, false, &cmdutil.UsageError{
			Message: "--name needs the name of a cluster",
			Hints:   []string{"see: opdock kubectl --help"},
		}
	}
	return name, rest, true, nil
}

// ownArguments are those that kubectl itself reads: the ones behind -- belong to a program it runs in a container.
func ownArguments(args []string) []string {
	if end := slices.Index(args, "--"); end >= 0 {
		return args[:end]
	}
	return args
}

// choosesCluster reports whether the arguments select a cluster themselves.
func choosesCluster(args []string) bool {
	return slices.ContainsFunc(ownArguments(args), func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return flag == "--kubeconfig" || flag == "--context"
	})
}

// runsAlone reports whether the kubectl command needs no cluster.
func runsAlone(args []string) bool {
	if len(args) == 0 || slices.ContainsFunc(ownArguments(args), isHelpFlag) {
		return true
	}
	if args[0] == "version" {
		return slices.Contains(args, "--client") || slices.Contains(args, "--client=true")
	}
	return slices.Contains([]string{"help", "options", "completion", "kustomize", "plugin"}, args[0])
}

func isHelpFlag(arg string) bool { return arg == "--help" || arg == "-h" }

// withKubeconfig returns the environment with KUBECONFIG set, and set only once: which of two settings wins depends on the
// program that reads them.
func withKubeconfig(env []string, path string) []string {
	const variable = "KUBECONFIG="
	others := slices.DeleteFunc(slices.Clone(env), func(setting string) bool { return strings.HasPrefix(setting, variable) })
	return append(others, variable+path)
}
