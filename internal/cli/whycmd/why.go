// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package whycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/why"
)

type whyOptions struct {
	name      string
	address   string
	namespace string
	last      int
	follow    bool
	totals    bool
	format    cmdutil.OutputFormat
}

// maxLast is how many records the endpoint gives at once.
const maxLast = 1000

// NewWhy returns the verb why.
func NewWhy(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o whyOptions
	cmd := &cobra.Command{
		Use:   "why [KIND[/NAME] | KIND NAME] [FLAG]...",
		Short: "Show why objects were reconciled, and with what result",
		Long: `Shows each reconcile: the events that triggered it, the fields that changed and who changed them, how long
it waited in the queue, how many events were folded into it, what it wrote and how it ended. No-ops,
reconciles triggered by the controller's own writes, and loops are marked.

In the directory of a project that you develop with "opdock dev", the command shows the operator of that
project, and fails if it is not running. Elsewhere, or with --name, it shows the controllers that "opdock run"
or "opdock dev" runs on the cluster. Use --address for other controllers, such as a manager with
--why-bind-address.

On a terminal, the command shows new reconciles until Ctrl-C. Otherwise it exits after the recorded ones. Use
--follow or --last to choose.

With -o json, it prints the response of the endpoint. With --follow, it prints one record per line.`,
		Example: `  opdock why                               # follow all reconciles
  opdock why appservice/web --last 3       # show the last three reconciles of an object
  opdock why robot -n team-a --follow
  opdock why --totals                      # count reconciles by cause
  opdock why --last 100 -o json | jq '.records[] | select(.findings)'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 || len(args) == 2 && strings.Contains(args[0]+args[1], "/") {
				return &cmdutil.UsageError{Message: "why takes one object, as KIND/NAME or KIND NAME", Hints: []string{cmdutil.SeeHelp(cmd)}}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			err := a.why(cmd.Context(), cmd, o, strings.Join(args, "/"))
			if err != nil && cmd.Context().Err() != nil {
				return cmdutil.ErrQuit
			}
			return err
		},
	}
	flags := cmd.Flags()
	a.AddNameFlag(cmd, &o.name, a.DefaultName(), "name of the cluster")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "show only objects in this namespace (default: all)")
	flags.IntVar(&o.last, "last", 0, "number of recent reconciles to show (default: 10)")
	flags.BoolVarP(&o.follow, "follow", "f", false, "show new reconciles as they happen (default on a terminal without --last)")
	flags.BoolVar(&o.totals, "totals", false, "print the totals since the controllers started")
	flags.StringVar(&o.address, "address", "", "URL of the endpoint, such as http://127.0.0.1:8082 (default: the endpoint of the cluster)")
	a.AddOutputFlag(cmd, &o.format)
	cmd.ValidArgsFunction = a.completeWhy(&o)
	return cmd
}

func (o *whyOptions) check(cmd *cobra.Command) error {
	var message string
	switch {
	case cmd.Flags().Changed("last") && (o.last < 1 || o.last > maxLast):
		message = fmt.Sprintf("--last must be between 1 and %d, not %d", maxLast, o.last)
	case o.totals && (o.follow || o.last > 0):
		message = "--totals counts all reconciles and cannot be used with --last or --follow"
	case o.address != "" && cmd.Flags().Changed("name"):
		message = "--name and --address cannot be used together"
	case o.address != "" && !strings.HasPrefix(o.address, "http://") && !strings.HasPrefix(o.address, "https://"):
		message = fmt.Sprintf("--address must be a URL such as http://127.0.0.1:8082, not %q", o.address)
	}
	if message == "" {
		return nil
	}
	return &cmdutil.UsageError{Message: message, Hints: []string{cmdutil.SeeHelp(cmd)}}
}

func (a verbs) why(ctx context.Context, cmd *cobra.Command, o whyOptions, what string) error {
	endpoint, err := a.findEndpoint(o, cmd.Flags().Changed("name"))
	if err != nil {
		return err
	}
	summary, err := endpoint.summary(ctx)
	if err != nil {
		return err
	}
	if o.totals {
		return a.printTotals(summary, what, o)
	}
	query := why.Query{Namespace: o.namespace, Limit: o.last}
	if query.Limit == 0 {
		query.Limit = 10
	}
	if what != "" {
		if query.Kind, query.Name, err = whichObject(what, summary); err != nil {
			return err
		}
	}
	follow := o.follow || !cmd.Flags().Changed("last") && !cmd.Flags().Changed("follow") && a.outIsTerminal() && o.format == cmdutil.OutputText
	answer, err := endpoint.records(ctx, query)
	if err != nil {
		return err
	}
	if len(answer.Records) == 0 && !follow {
		return a.nothingRecorded(ctx, endpoint, query, o)
	}
	show := &whyShow{out: a.Out, colour: a.Colour && a.outIsTerminal(), location: a.Now().Location()}
	switch {
	case o.format == cmdutil.OutputJSON && !follow:
		return a.PrintJSON(answer)
	case o.format == cmdutil.OutputJSON:
		for _, record := range answer.Records {
			if err := a.printLine(record); err != nil {
				return err
			}
		}
	default:
		for _, record := range answer.Records {
			show.record(record)
		}
	}
	if !follow {
		return nil
	}
	if a.outIsTerminal() && len(answer.Records) == 0 {
		fmt.Fprintln(a.Err, "Nothing has been reconciled yet. Waiting for reconciles (Ctrl-C to quit).")
	}
	query.After = answer.Last
	if query.After == 0 {
		query.After = summary.Last
	}
	return endpoint.follow(ctx, query, func(record *why.Record, lost uint64) error {
		switch {
		case record == nil:
			fmt.Fprintln(a.Err, overrun(int(lost)))
		case o.format == cmdutil.OutputJSON:
			return a.printLine(record)
		default:
			show.record(record)
		}
		return nil
	})
}

// printLine prints JSON that ends with the line.
func (a verbs) printLine(record *why.Record) error { return json.NewEncoder(a.Out).Encode(record) }

// outIsTerminal reports whether results go to a terminal.
func (a verbs) outIsTerminal() bool {
	file, ok := a.Out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// nothingRecorded lists what is recorded instead.
func (a verbs) nothingRecorded(ctx context.Context, e *whyEndpoint, q why.Query, o whyOptions) error {
	if o.format == cmdutil.OutputJSON && q.Name == "" {
		return a.PrintJSON(why.Answer{Records: []*why.Record{}})
	}
	what := "any object"
	switch {
	case q.Name != "":
		what = q.Kind + " " + q.Name
	case q.Kind != "":
		what = "any " + q.Kind
	}
	if q.Namespace != "" {
		what += " in namespace " + q.Namespace
	}
	message := "no reconciles of " + what + " are recorded"
	var hints []string
	others, err := e.records(ctx, why.Query{Limit: maxLast})
	if err != nil {
		return err
	}
	if known := knownObjects(others.Records); known != "" {
		hints = append(hints, "recorded objects: "+known)
	}
	if others.Dropped.Records > 0 {
		hints = append(hints, fmt.Sprintf("%d older records were dropped", others.Dropped.Records))
	}
	return hint.With(errors.New(message), hints...)
}

// knownObjects names a few of the objects that there are records of.
func knownObjects(records []*why.Record) string {
	const few = 8
	var names []string
	seen := map[why.Object]bool{}
	for i := len(records) - 1; i >= 0; i-- {
		object := why.Object{Kind: records[i].Object.Kind, Namespace: records[i].Object.Namespace, Name: records[i].Object.Name}
		if seen[object] {
			continue
		}
		seen[object] = true
		if len(names) == few {
			return strings.Join(names, ", ") + ", …"
		}
		name := strings.ToLower(object.Kind) + "/" + object.Name
		if object.Namespace != "" && object.Namespace != "default" {
			name += " -n " + object.Namespace
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// clock is a time of day as it stands before a record.
const clock = "15:04:05.000"

// waitedFor is a duration as it stands in a record.
func waitedFor(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return cmdutil.Short(d)
}
