// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package devcmd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/librarylog"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/target"
)

type devOptions struct {
	target.Which

	dir        string
	main       string
	samples    bool
	noGenerate bool
	quiet      bool
	lens       bool
	build      dev.BuildOptions
	debugPort  int
	format     cmdutil.OutputFormat
	page       cmdutil.PageOptions
}

// NewDev returns the verb dev.
func NewDev(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev [FLAG]... [-- ARGUMENT...]",
		Short: "Run the operator in this directory, and rebuild and restart it when files change",
		Long: `Starts a cluster for the project, generates code and manifests, applies the CRDs and roles, and builds
the operator. Then runs the operator on this machine with the permissions of its own service account.

After that, dev watches the files of the project and does what each change requires. A change to a
type is generated, applied, built and restarted. A change to a controller is built and restarted. A
changed role or sample is only applied. A status line shows what was done and how long it took. If the
code does not compile, the errors are shown and the old operator keeps running.

The project can be any Go module with an operator: created by opdock, kubebuilder or operator-sdk, or
written with plain client-go. If the operator has flags for a kubeconfig, leader election, metrics or
ports, dev sets them for this machine. Arguments after -- are passed to the operator and take
precedence. Webhooks work: dev creates a certificate and configures the API server to call this machine.

The operator does not see your kubeconfig: in its home directory, .kube/config is its own.

Keys on a terminal: s applies the samples, r restarts, t runs the tests, q quits, ? shows the keys. At the
end, dev stops the operator, and also the cluster if dev started it, unless you set --keep. The objects of
the cluster are kept. Your kubeconfig is not changed.`,
		Example: `  opdock dev
  opdock dev --samples                     # also apply config/samples, now and when they change
  opdock dev --dir ../guestbook --name test
  opdock dev --main ./cmd/manager -- --zap-log-level=debug
  opdock dev --context staging --namespace guestbook-dev
  opdock dev --debug                       # then attach an editor to 127.0.0.1:2345
  opdock dev --quiet -o json | jq .state   # one line of JSON per round, without the operator's log`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash > 0 || dash < 0 && len(args) > 0 {
				return &cmdutil.UsageError{
					Message: fmt.Sprintf("dev takes no arguments of its own, but got %q", args[0]),
					Hints:   []string{"for another directory: opdock dev --dir " + cmdutil.ShellQuote(args[0]), "for the operator: opdock dev -- " + cmdutil.ShellQuote(args[0])},
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return a.dev(cmd, o, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.dir, "dir", ".", "directory of the project, or a directory in it")
	flags.StringVar(&o.main, "main", "", "main package of the operator (default: ./cmd, or ., or the only one)")
	a.AddNameFlag(cmd, &o.Name, a.Getenv(cmdutil.ClusterVariable), "name of the cluster; started if it is not running (default: the name of the project)")
	flags.IntVar(&o.Nodes, "nodes", 0, "number of simulated nodes if the cluster is started (default: as with up)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "use the cluster of this kubeconfig instead; without webhooks")
	flags.StringVar(&o.Context, "context", "", "use the cluster of this context instead; without webhooks")
	flags.StringVarP(&o.Namespace, "namespace", "n", "default", "namespace for samples that do not set one (default: one that the operator watches)")
	flags.Lookup("namespace").DefValue = "" // it is default, unless the operator does not watch that
	flags.BoolVar(&o.samples, "samples", false, "apply the samples at the start")
	flags.BoolVar(&o.noGenerate, "no-generate", false, "do not generate code or manifests")
	flags.StringVar(&o.build.Tags, "tags", "", "build tags, separated by commas")
	flags.BoolVar(&o.build.Race, "race", false, "build with the race detector")
	flags.BoolVar(&o.build.Debug, "debug", false, "attach the debugger Delve to the operator, again after each restart; slower builds")
	flags.IntVar(&o.debugPort, "debug-port", dev.DebugPort, "port on 127.0.0.1 where debuggers connect to Delve, with DAP")
	flags.BoolVar(&o.lens, "lens", true, "record the operator's requests with a local proxy, for why, trace and rbac")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "do not show the operator's log; it is also written to a file")
	flags.BoolVar(&o.Keep, "keep", false, "keep the cluster running at the end, even if this command started it")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long to wait for the cluster to start")
	a.AddOutputFlag(cmd, &o.format)
	o.page.AddFlags(cmd)
	return cmd
}

func (o *devOptions) check(cmd *cobra.Command) error {
	if err := cmdutil.CheckWhich(cmd, &o.Which); err != nil {
		return err
	}
	var message string
	switch changed := cmd.Flags().Changed("debug-port"); {
	case changed && !o.build.Debug:
		message = "--debug-port needs --debug"
	case changed && (o.debugPort < 1 || o.debugPort > 65535):
		message = fmt.Sprintf("--debug-port must be between 1 and 65535, not %d", o.debugPort)
	default:
		return o.page.Check(cmd)
	}
	return &cmdutil.UsageError{Message: message, Hints: []string{cmdutil.SeeHelp(cmd)}}
}

func (a verbs) dev(cmd *cobra.Command, o devOptions, arguments []string) (err error) {
	ctx := cmd.Context()
	if err := a.RecoverProject(ctx, cmdutil.ModuleFolder(o.dir)); err != nil {
		return err
	}
	found, main, err := a.findOperator(o)
	if err != nil {
		return err
	}
	// Whatever would be in the way later on is better said before a cluster starts.
	if _, err := exec.LookPath("go"); err != nil {
		return hint.With(errors.New("the go command was not found on PATH; dev builds the operator with it"), "install Go: https://go.dev/dl")
	}
	if err := o.page.CheckFree(); err != nil {
		return err
	}
	debugger, err := a.findDebugger(ctx, o)
	if err != nil {
		return err
	}
	var claimed *dev.Claim
	if !o.Foreign() {
		if claimed, err = a.claimCluster(ctx, &o, found); err != nil {
			return err
		}
		defer claimed.Release()
	}
	t, err := a.findDevTarget(ctx, o, found)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Leave()) }()
	if o.Foreign() {
		if claimed, err = claim(t.stateDir, t.Title); err != nil {
			return err
		}
		defer claimed.Release()
	}
	librarylog.Discard() // what they log is about requests of this process, and must not be taken for the operator's log
	show := a.newDevShow(o)
	defer show.end()
	found.Warn = show.Say
	options := dev.Options{
		Project: found, Main: main, Build: o.build, Arguments: arguments, Env: a.Env,
		StateDir: t.stateDir, Claim: claimed, Cluster: t.cluster, Namespace: o.Namespace, NamespaceGiven: cmd.Flags().Changed("namespace"), Samples: o.samples,
		Generate: dev.GenerateApart(a.Env), Assets: a.assets, Debugger: debugger, Screen: show, Keys: show.keys,
		Lens: o.lens,
	}
	if o.noGenerate {
		options.Generate = nil
	}
	session, err := dev.New(options)
	if err != nil {
		return err
	}
	show.begin(fmt.Sprintf("Developing %s on %s", found.Name, t.Title), session.LogPath(), t.kubectl)
	closePage, err := a.serveDevPage(ctx, o, t, show, session)
	if err != nil {
		return err
	}
	defer closePage()
	err = session.Run(ctx)
	show.end()
	if errors.Is(err, dev.ErrClusterEnded) {
		return errors.Join(t.Ended(), &cmdutil.SaidError{Reason: "the cluster has stopped"})
	}
	return err
}

// findDebugger makes sure that the operator can be debugged, if the user wants to.
func (a verbs) findDebugger(ctx context.Context, o devOptions) (dev.Debugger, error) {
	if !o.build.Debug {
		return dev.Debugger{}, nil
	}
	if taken, err := freeport.Taken(o.debugPort); taken || err != nil {
		return dev.Debugger{}, hint.With(errors.Join(fmt.Errorf("port %d for the debugger is in use", o.debugPort), err), "choose another one: --debug-port")
	}
	d := a.NewDisplay(o.format == cmdutil.OutputJSON)
	stop := d.Animate()
	defer stop()
	path, err := dev.FindDebugger(ctx, filepath.Join(a.Dock.Home(), "tools"), a.Env, d.Run)
	return dev.Debugger{Path: path, Port: o.debugPort}, err
}

// assets returns a directory for envtest.
func (a verbs) assets(ctx context.Context) (string, error) {
	binary, err := a.ControlPlaneBinary(ctx, true)
	if err != nil {
		return "", err
	}
	return a.Dock.Assets(binary)
}

func (a verbs) findOperator(o devOptions) (found *project.Project, main string, err error) {
	found, err = project.Find(o.dir)
	var (
		missing   *project.NotFoundError
		ambiguous *project.AmbiguousMainError
	)
	if errors.As(err, &missing) {
		return nil, "", a.NoProject(err)
	}
	if err != nil {
		return nil, "", err
	}
	main, err = found.Main(o.main)
	if errors.As(err, &ambiguous) {
		return nil, "", &cmdutil.UsageError{Message: err.Error(), Hints: []string{"for example: opdock dev --main " + ambiguous.Mains[0]}}
	}
	return found, main, err
}
