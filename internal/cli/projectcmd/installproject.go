// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/crdsource"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/librarylog"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/target"
)

// projectOptions are the options of all verbs that apply or delete a project.
type projectOptions struct {
	target.Which

	dir        string
	noGenerate bool
	dryRun     bool
	format     manifestFormat
}

func (a verbs) addProjectFlags(cmd *cobra.Command, o *projectOptions, nameUsage string) {
	flags := cmd.Flags()
	a.AddDirFlag(cmd, &o.dir)
	a.AddNameFlag(cmd, &o.Name, a.Getenv(cmdutil.ClusterVariable), nameUsage+" (default: the name of the project)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "use the cluster of this kubeconfig instead")
	flags.StringVar(&o.Context, "context", "", "use the cluster of this context instead")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long to wait for the cluster to start, and for the objects")
	flags.BoolVar(&o.dryRun, "dry-run", false, "change nothing; ask the server what would happen to each object")
	a.addManifestFormatFlag(cmd, &o.format)
	a.Complete(cmd, "context", func() []string { return a.contexts(o.Kubeconfig) })
}

func (a verbs) addGenerateFlag(cmd *cobra.Command, o *projectOptions) {
	cmd.Flags().BoolVar(&o.noGenerate, "no-generate", false, "use the manifests as they are, even if types or markers have changed")
}

func (a verbs) addNamespaceFlag(cmd *cobra.Command, o *projectOptions) {
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "default", "namespace for objects that do not set one")
}

// contexts returns the contexts of a kubeconfig, for completion.
func (a verbs) contexts(kubeconfig string) []string {
	_, loaded, err := a.Targets().LoadKubeconfig(kubeconfig, "")
	if err != nil {
		return nil
	}
	raw, err := loaded.RawConfig()
	if err != nil {
		return nil
	}
	var names []string
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// projectRun is one run of such a verb.
type projectRun struct {
	verbs
	projectOptions

	cmd     *cobra.Command
	project *project.Project
	target  *target.Target // set by reach
	server  *apply.Server  // set by reach
	// sessions are the sessions of opdock dev on the cluster; set by reach
	sessions []*apply.Inventory
	display  *cmdutil.Display
	notes    []string
}

// newProjectRun finds the project and makes its generated files up to date.
func (a verbs) newProjectRun(cmd *cobra.Command, o projectOptions) (*projectRun, error) {
	if err := cmdutil.CheckWhich(cmd, &o.Which); err != nil {
		return nil, err
	}
	if !o.dryRun {
		if err := a.RecoverProject(cmd.Context(), cmdutil.ModuleFolder(o.dir)); err != nil {
			return nil, err
		}
	}
	librarylog.Discard() // a request that times out is reported here, and only here
	r := &projectRun{verbs: a, projectOptions: o, cmd: cmd, display: a.NewDisplay(o.format != manifestText)}
	var err error
	if r.project, err = a.FindProject(o.dir, &r.notes); err != nil {
		return nil, err
	}
	if r.Name == "" {
		r.Name = a.ClusterNameFor(r.project) // which dev uses as well
	}
	return r, nil
}

// generated runs the generators that the project's manifests come from.
func (r *projectRun) generated(ctx context.Context) error {
	only, has := r.project.Generators()
	if r.noGenerate || !has {
		return nil
	}
	return r.step("generating", func() (done string, err error) {
		result, err := r.Generate(ctx, generate.Options{Dir: r.project.Dir, Only: only, Check: r.dryRun})
		switch {
		case errors.Is(err, generate.ErrNothing):
			return "", nil
		case err != nil:
			return "", hint.With(r.explainGenerate(r.cmd, err, cmdutil.OutputText), "or use the manifests as they are: --no-generate")
		case len(result.Changes) == 0:
			return "", nil
		case r.dryRun:
			r.note("%s stale and used unchanged; to update: %s generate", cmdutil.Are(len(result.Changes)), cmdutil.ShellQuote(r.Program))
			return "", nil
		default:
			return fmt.Sprintf("generated %s, %d changed", cmdutil.Files(result.Files), len(result.Changes)), nil
		}
	})
}

// note adds a note that is printed at the end.
func (r *projectRun) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// errNotRunning means that there is no cluster for a dry run.
var errNotRunning = errors.New("the cluster is not running")

// reach connects to the cluster. A cluster of opdock's is started if that is wanted.
func (r *projectRun) reach(ctx context.Context, start bool) error {
	which := r.Which
	which.Keep = true // what is started goes on
	which.NamespaceOfContext = !r.cmd.Flags().Changed("namespace")
	var err error
	if start && !r.dryRun {
		r.target, err = r.Targets().Open(ctx, which)
	} else {
		r.target, err = r.Targets().OpenRunning(which)
	}
	switch {
	case r.dryRun && errors.As(err, new(*cluster.NotRunningError)):
		return errNotRunning
	case err != nil:
		return err
	case r.target.Started:
		r.note("cluster %q was started and keeps running; stop it: %s", r.Name, r.Command("down", r.Name))
	}
	r.Namespace = r.target.Namespace
	// Which namespaces have to be there depends on the manifests.
	if err := r.target.Answers(); err != nil {
		return err
	}
	if r.server, err = apply.Connect(r.target.Config); err != nil {
		return err
	}
	return r.findSessions(ctx)
}

// options returns the options of package apply for a part of the project's inventory.
func (r *projectRun) options(part string) apply.Options {
	return apply.Options{
		Manager: apply.ProjectManager, Set: r.set(part), Shared: r.shared(), Namespace: r.Namespace, MakeNamespaces: r.target.Ours, DryRun: r.dryRun,
		Note: func(text string) { r.note("%s", text) },
	}
}

// within limits the time of something on the server.
func (r *projectRun) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("%w: %s", cmdutil.ErrTimeout, r.Timeout))
}

// step shows that something is done, and how long it took.
func (r *projectRun) step(doing string, work func() (done string, err error)) error {
	r.display.Run(doing)
	stop := r.display.Animate()
	began := r.Now()
	done, err := work()
	stop()
	if err == nil && done != "" {
		r.display.Done(done, r.Now().Sub(began))
	}
	return err
}

// explainDeploy adds to an error of package apply what the user can do about it.
func (r *projectRun) explainDeploy(ctx context.Context, err error) error {
	var (
		refused   *apply.RefusedError
		namespace *apply.MissingNamespaceError
		unknown   *apply.UnknownKindsError
		stuck     *apply.StuckError
		late      *apply.UnavailableError
	)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.New("interrupted: changes made so far are kept")
	case errors.As(err, &refused):
		return r.explainRefused(refused)
	case errors.As(err, &namespace):
		return hint.With(fmt.Errorf("%w in %s; nothing was changed", err, r.target.Title),
			"create it: kubectl create namespace "+namespace.Namespaces[0], "or use another namespace for objects that do not set one: --namespace")
	case errors.As(err, &unknown):
		return hint.With(fmt.Errorf("%w; nothing was changed", err), "install their CRDs first, or remove them from the manifests")
	case errors.As(err, &stuck):
		hints := []string{"wait longer: --timeout " + (2 * r.Timeout).String()}
		if r.target.Ours {
			hints = append(hints, "if they wait for the operator: its pods are simulated here; to run it: "+cmdutil.ShellQuote(r.Program)+" dev")
		}
		return hint.With(fmt.Errorf("not gone after %s: %w", r.Timeout, err), hints...)
	case errors.As(err, &late) && errors.Is(err, apply.ErrFailed):
		return hint.With(err, "the objects are kept; remove them: "+cmdutil.ShellQuote(r.Program)+" undeploy")
	case errors.As(err, &late):
		return hint.With(fmt.Errorf("not available after %s: %w", r.Timeout, err),
			"the objects are kept; remove them: "+cmdutil.ShellQuote(r.Program)+" undeploy", "or wait longer: --timeout "+(2*r.Timeout).String())
	default:
		return err
	}
}

// explainRefused shows where in the source that comes from which the server does not take.
func (r *projectRun) explainRefused(refused *apply.RefusedError) error {
	reasons := crdsource.Refusals(r.project.Dir, refused.Definition, refused.Err)
	lines := make([]string, 0, len(reasons))
	for _, reason := range reasons {
		lines = append(lines, reason.String())
	}
	return fmt.Errorf("%s rejected CRD %s:\n%s", r.target.Title, refused.Definition.GetName(), strings.Join(lines, "\n"))
}

// conclude prints what happened to the objects, and the notes.
func (r *projectRun) conclude(outcomes []apply.Outcome) error {
	err := r.printOutcomes(outcomes)
	if r.format == manifestJSON {
		return err // which has the notes
	}
	for _, note := range r.notes {
		fmt.Fprintf(r.Err, "note: %s\n", note)
	}
	return err
}

// withoutServer is the result of a dry run without a cluster.
func (r *projectRun) withoutServer(objects []*unstructured.Unstructured) error {
	var outcomes []apply.Outcome
	for _, object := range objects {
		outcomes = append(outcomes, apply.Outcome{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Action: "unknown",
		})
	}
	r.note("cluster %q is not running, so the changes are unknown; start it: %s", r.Name, r.Command("up", r.Name))
	return r.conclude(outcomes)
}
