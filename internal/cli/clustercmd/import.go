// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/importer"
	"github.com/opdock/opdock/internal/scratch"
)

// importOptions are the flags of import.
type importOptions struct {
	cmdutil.StartOptions
	importer.Options
	kubeconfig, context, dump string
}

// NewImport returns the verb import.
func NewImport(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import [--context CONTEXT | -f DUMP] [FLAG]...",
		Short: "Start a new cluster with the objects of another one",
		Long: `Reads the objects of a real cluster, or of a dump of one, and starts a new cluster with them. The objects keep their
UIDs, timestamps and status. Controllers start when all objects are there. The real cluster is only read.

A dump is a YAML or JSON file with manifests or Lists, or a directory of such files, as must-gather writes it.

These are not imported: objects in kube-system and the other namespaces of the system, unless you name them with -n;
Events, Leases and other internal objects of a cluster; tokens of service accounts; webhooks that call a server
outside of this machine. Secrets get placeholders instead of their contents, unless you set --with-secrets.
References to owners that are not imported are removed. The command reports what it left out.`,
		Example: `  opdock import --context prod -n shop --name shop
  opdock import --context prod --kinds deployments,configmaps --name trial
  opdock import -f ./must-gather --name case-4711`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var message string
			switch {
			case o.dump != "" && (cmd.Flags().Changed("context") || cmd.Flags().Changed("kubeconfig")):
				message = "-f and --context or --kubeconfig cannot be used together: objects come from a dump or from a cluster"
			case o.dump == "" && !cmd.Flags().Changed("context") && !cmd.Flags().Changed("kubeconfig"):
				message = "name the source: --context or --kubeconfig for a cluster, or -f for a dump"
			case o.Timeout <= 0:
				message = fmt.Sprintf("--timeout must be more than 0, not %s", o.Timeout)
			}
			if message != "" {
				return &cmdutil.UsageError{Message: message, Hints: []string{cmdutil.SeeHelp(cmd)}}
			}
			return a.importInto(cmd.Context(), o)
		},
	}
	a.AddNameFlag(cmd, &o.Name, a.DefaultName(), "name of the new cluster")
	flags := cmd.Flags()
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig whose cluster is read")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig to use (default: $KUBECONFIG or ~/.kube/config)")
	flags.StringVarP(&o.dump, "filename", "f", "", "read a dump instead of a cluster: a file or a directory")
	flags.StringSliceVarP(&o.Namespaces, "namespace", "n", nil, "import only these namespaces, separated by commas (default: all but those of the system)")
	flags.StringSliceVar(&o.Kinds, "kinds", nil, "import only these kinds, separated by commas; namespaces, nodes and CRDs are always imported")
	flags.BoolVar(&o.WithSecrets, "with-secrets", false, "keep the contents of Secrets")
	flags.BoolVar(&o.SkipForbidden, "skip-forbidden", false, "leave out kinds that you have no right to list, instead of failing")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "stop the cluster and fail if it is not ready in this time")
	flags.BoolVarP(&o.Quiet, "quiet", "q", false, "do not show progress")
	return cmd
}

func (a verbs) importInto(ctx context.Context, o importOptions) error {
	before, err := a.Dock.Find(o.Name)
	if err != nil {
		return err
	}
	if before.State != cluster.NeverStarted && before.State != cluster.Incomplete {
		return hint.With(fmt.Errorf("cluster %q exists (%s), and objects can only be imported into a new one", o.Name, cmdutil.StateWord(before.State)),
			"choose another name:  --name another",
			"or remove it first:   "+a.Command("down", o.Name, "--delete"))
	}
	objects, report, err := a.readObjects(ctx, o)
	if err != nil {
		return err
	}
	if o.Binary, err = a.ControlPlaneBinary(ctx, o.Quiet); err != nil {
		return err
	}
	// The file holds what the cluster held, so it is as private and does not last.
	work, remove, err := scratch.Make("opdock-import-")
	if err != nil {
		return err
	}
	defer remove()
	o.From = filepath.Join(work, "objects")
	if err := importer.Write(o.From, objects); err != nil {
		return err
	}
	c, err := a.Start(ctx, o.StartOptions, fmt.Sprintf("Starting cluster %q with %s", o.Name, count(report.Objects, "object")))
	if err != nil {
		return a.ExplainStart(ctx, o.StartOptions, before.Dir, err)
	}
	a.tellImported(report)
	if !o.Quiet {
		a.printUsage(fmt.Sprintf("Cluster %q is ready.", o.Name), c, o.StartOptions)
	}
	return nil
}

// readObjects reads the source and decides what is imported.
func (a verbs) readObjects(ctx context.Context, o importOptions) ([]importer.Object, *importer.Report, error) {
	d := a.NewDisplay(o.Quiet)
	d.Title("Reading objects")
	o.Progress = func(resource string, objects, _ int) {
		d.Done(fmt.Sprintf("%s: %s", resource, count(objects, "object")), 0)
	}
	var read []importer.Object
	var report *importer.Report
	var err error
	if o.dump != "" {
		read, report, err = importer.FromFiles(ctx, o.dump, o.Options)
	} else {
		config, _, loadErr := a.Targets().LoadKubeconfig(o.kubeconfig, o.context)
		if loadErr != nil {
			return nil, nil, loadErr
		}
		// A real cluster is shared with others.
		config.QPS, config.Burst = 20, 40
		read, report, err = importer.FromCluster(ctx, config, o.Options)
	}
	if ctx.Err() != nil {
		return nil, nil, errors.New("interrupted: no cluster was started")
	}
	var forbidden *importer.ForbiddenError
	if errors.As(err, &forbidden) {
		hints := []string{"import the rest:  --skip-forbidden"}
		if forbidden.Selectable() {
			hints = append(hints, "or name the kinds that you need:  --kinds")
		}
		return nil, nil, hint.With(fmt.Errorf("you may not list %s in the source: %s", count(len(forbidden.Resources), "kind"), strings.Join(forbidden.Resources, ", ")),
			hints...)
	}
	if err != nil {
		return nil, nil, err
	}
	objects, err := importer.Prepare(read, o.Options, report)
	if err != nil {
		return nil, nil, err
	}
	if len(objects) == 0 {
		return nil, nil, errors.New("the source has no objects to import")
	}
	return objects, report, nil
}

func (a verbs) tellImported(report *importer.Report) {
	fmt.Fprintf(a.Err, "Imported %s.\n", count(report.Objects, "object"))
	for _, line := range importer.Lines(report.Changed) {
		fmt.Fprintf(a.Err, "  changed %s\n", line)
	}
	for _, line := range importer.Lines(report.LeftOut) {
		fmt.Fprintf(a.Err, "  left out %s\n", line)
	}
	if len(report.Forbidden) > 0 {
		fmt.Fprintf(a.Err, "  no right to list: %s\n", strings.Join(report.Forbidden, ", "))
	}
	if len(report.Unreadable) > 0 {
		fmt.Fprintf(a.Err, "  not valid YAML or JSON, or cut off: %s\n", strings.Join(report.Unreadable, ", "))
	}
	if len(report.Irregular) > 0 {
		fmt.Fprintf(a.Err, "  not a file: %s\n", strings.Join(report.Irregular, ", "))
	}
	if len(report.Unavailable) > 0 {
		fmt.Fprintf(a.Err, "  the source does not answer for: %s\n", strings.Join(report.Unavailable, ", "))
	}
}

// count returns "1 object" or "N objects".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
