// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tracecmd

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/trace"
)

type traceOptions struct {
	target.Which

	as   string
	open string
	page bool
	// pageAddress is where the page is served.
	pageAddress string
	save        string
	show        string
	quiet       bool
	filter      trace.Filter
	format      cmdutil.OutputFormat
}

// details are the values of --show.
var details = map[string]trace.Detail{"writes": trace.ShowWrites, "requests": trace.ShowReads, "all": trace.ShowAll}

// NewTrace returns the verb trace.
func NewTrace(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o traceOptions
	cmd := &cobra.Command{
		Use:   "trace [FLAG]... -- COMMAND [ARGUMENT]...",
		Short: "Run a program and show what it does to the API server",
		Long: `Runs a program with a KUBECONFIG that leads through a local proxy, and prints a line for each write and
each error as it happens: what strace does for system calls, for the Kubernetes API. At the end it prints a
summary: requests by resource and verb, writes that changed nothing, reads that no cache answers, lists
without a limit, conflicts, and objects that are written often.

The program can be written in any language and needs no change. It has the rights of the service account of
the project in this directory, if the cluster has that account, or those that --as selects. Otherwise it is
an administrator.

Everything the proxy sees is also written to a recording, one JSON object per line. The values of Secrets are
left out. Read a recording with --open, look at it in a browser with --open and --page, or attach it to a bug
report. It holds the names and fields of objects.

The exit code is that of the program.`,
		Example: `  opdock trace -- ./bin/manager --leader-elect=false
  opdock trace --as shop:operator -- python3 operator.py
  opdock trace --show all --resource deployments.apps -- ./bin/manager
  opdock trace -o json -- kubectl apply -f app.yaml | jq 'select(.request.status >= 400)'
  opdock trace --open recording.jsonl --verb patch,apply
  opdock trace --open recording.jsonl --page`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash > 0 || dash < 0 && len(args) > 0 {
				return &cmdutil.UsageError{
					Message: fmt.Sprintf("the program goes after --, but got %q before it", args[0]),
					Hints:   []string{"for example: opdock trace -- " + cmdutil.ShellQuote(args[0])},
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			if o.page {
				return a.serveRecording(cmd.Context(), o)
			}
			if o.open != "" {
				return a.openRecording(o)
			}
			return a.trace(cmd, o, args)
		},
	}
	flags := cmd.Flags()
	a.AddNameFlag(cmd, &o.Name, a.Getenv(cmdutil.ClusterVariable), "name of the cluster; started if it is not running (default: the name of the project)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "use the cluster of this kubeconfig instead")
	flags.StringVar(&o.Context, "context", "", "use the cluster of this context instead")
	flags.StringVar(&o.as, "as", "", "identity of the program: NAMESPACE:SERVICEACCOUNT, or admin")
	flags.StringVar(&o.open, "open", "", "show this recording instead of running a program")
	flags.BoolVar(&o.page, "page", false, "with --open: serve the recording as a page on loopback, until you press Ctrl-C")
	flags.StringVar(&o.pageAddress, "page-address", "", "with --page: its address, such as 127.0.0.1:8700 (default: a free port on loopback)")
	flags.StringVar(&o.save, "save", "", "where to write the recording (default: the state directory)")
	flags.StringVar(&o.show, "show", "writes", "what to print: writes and errors, requests, or all with watch events")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "print only the summary")
	flags.StringSliceVar(&o.filter.Verbs, "verb", nil, "print only these verbs, separated by commas")
	flags.StringSliceVar(&o.filter.Resources, "resource", nil, "print only these resources, such as deployments.apps")
	flags.StringVarP(&o.filter.Namespace, "namespace", "n", "", "print only requests in this namespace")
	flags.StringVar(&o.filter.Name, "object", "", "print only requests about objects with this name")
	flags.BoolVar(&o.Keep, "keep", false, "keep the cluster running at the end, even if this command started it")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long to wait for the cluster to start")
	a.AddOutputFlag(cmd, &o.format)
	a.Complete(cmd, "show", func() []string { return []string{"writes", "requests", "all"} })
	a.Complete(cmd, "verb", func() []string { return verbNames })
	return cmd
}

var verbNames = []string{"get", "list", "watch", "create", "update", "patch", "apply", "delete", "deletecollection"}

func (o *traceOptions) check(cmd *cobra.Command, args []string) error {
	var message string
	_, known := details[o.show]
	namespace, account, split := strings.Cut(o.as, ":")
	switch {
	case o.open == "" && len(args) == 0:
		message = "there is no program to run: add it after --, or open a recording with --open"
	case o.open != "" && len(args) > 0:
		message = "--open cannot be used with a program to run"
	case o.open != "" && (o.as != "" || o.save != "" || o.Foreign() || o.Keep):
		message = "--open cannot be used with --as, --save, --keep, --kubeconfig or --context"
	case o.page && o.open == "":
		message = "--page needs --open FILE"
	case o.page && (o.format != cmdutil.OutputText || o.quiet || cmd.Flags().Changed("show") || o.filter.IsSet()):
		message = "--page shows the whole recording and cannot be used with filters: filter on the page"
	case o.pageAddress != "" && !o.page:
		message = "--page-address needs --page"
	case !known:
		message = fmt.Sprintf("--show must be writes, requests or all, not %q", o.show)
	case o.as != "" && o.as != "admin" && (!split || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(account)) > 0):
		message = fmt.Sprintf("--as must be NAMESPACE:SERVICEACCOUNT or admin, not %q", o.as)
	}
	for _, verb := range o.filter.Verbs {
		if !slices.Contains(verbNames, verb) {
			message = fmt.Sprintf("--verb %s is not known: use %s", verb, strings.Join(verbNames, ", "))
		}
	}
	if message == "" && o.pageAddress != "" {
		if err := page.CheckAddress(o.pageAddress); err != nil {
			message = "--page-address: " + err.Error()
		}
	}
	if message != "" {
		return &cmdutil.UsageError{Message: message, Hints: []string{cmdutil.SeeHelp(cmd)}}
	}
	if len(args) > 0 {
		if _, err := exec.LookPath(args[0]); err != nil {
			// Before a cluster starts for it.
			return &cmdutil.UsageError{Message: fmt.Sprintf("cannot run %s: %v", args[0], errors.Unwrap(err))}
		}
	}
	// --namespace filters here, and is not where anything goes.
	o.Namespace = "default"
	return cmdutil.CheckWhich(cmd, &o.Which)
}

// exitError carries the exit code of the program.
func exitError(code int) error {
	if code == 0 {
		return nil
	}
	return &cmdutil.ExitCodeError{Code: code}
}
