// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/deploy"
	"github.com/opdock/opdock/internal/hint"
)

func NewInstall(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o projectOptions
	cmd := &cobra.Command{
		Use:   "install [FLAG]...",
		Short: "Install the kinds of a project on a cluster",
		Long: `Applies the CRDs of the Go operator project in the current folder by server-side apply, and returns
when objects of their kinds can be created. It is what "make install" does in kubebuilder's projects.

The CRDs are those of the kustomization in config/crd or, in projects of other layouts, those in YAML files
of config, deploy, artifacts, manifests, crds and the crds of charts. If types or markers have changed since
they were generated, they are generated first.

The cluster is one of opdock's, which is started if it does not run and goes on afterwards, or with
--kubeconfig or --context any other. A CRD that the server refuses is shown with the line of the Go type
that it comes from, where that can be found.`,
		Example: `  opdock install
  opdock install --dir ../other-operator --dry-run
  opdock install -o yaml | kubectl diff -f -
  opdock install --context staging`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.newProjectRun(cmd, o)
			if err != nil {
				return err
			}
			return r.install(cmd.Context())
		},
	}
	a.addProjectFlags(cmd, &o, "the cluster; it is started if it does not run")
	a.addGenerateFlag(cmd, &o)
	return cmd
}

type uninstallOptions struct {
	projectOptions
	ignoreNotFound bool
	force          bool
	keepCRDs       bool
}

func NewUninstall(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o uninstallOptions
	cmd := &cobra.Command{
		Use:   "uninstall [FLAG]...",
		Short: "Remove the kinds of a project from a cluster",
		Long: `Deletes the CRDs of the Go operator project in the current folder and returns when they are gone. It is
what "make uninstall" does in kubebuilder's projects.

A CRD takes all objects of its kind with it. If there are any, nothing is deleted without --force or, on a
terminal, a yes.`,
		Example: `  opdock uninstall
  opdock uninstall --dry-run
  opdock uninstall --force --context staging`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.newProjectRun(cmd, o.projectOptions)
			if err != nil {
				return err
			}
			return r.uninstall(cmd.Context(), o)
		},
	}
	a.addProjectFlags(cmd, &o.projectOptions, "the cluster; it has to be running")
	a.addRemovalFlags(cmd, &o)
	return cmd
}

func (a verbs) addRemovalFlags(cmd *cobra.Command, o *uninstallOptions) {
	cmd.Flags().BoolVar(&o.ignoreNotFound, "ignore-not-found", true, "what is not there is no error")
	cmd.Flags().BoolVar(&o.force, "force", false, "delete the kinds even if there are objects of them, and those too")
}

// definitions are the project's CRDs, of which there has to be one.
func (r *projectRun) definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	definitions, err := r.project.CRDs(ctx)
	if err != nil {
		return nil, r.explainProject(err)
	}
	if len(definitions) == 0 {
		return nil, hint.With(r.project.NoCRDs(),
			"if it has types with markers: "+cmdutil.ShellQuote(r.Program)+" generate --dir "+cmdutil.ShellQuote(r.dir))
	}
	return definitions, nil
}

func (r *projectRun) install(ctx context.Context) error {
	if err := r.generated(ctx); err != nil {
		return err
	}
	definitions, err := r.definitions(ctx)
	if err != nil {
		return err
	}
	if r.format == manifestYAML {
		return errors.Join(r.printManifests(definitions), r.conclude(nil))
	}
	if err := r.reach(ctx, true); errors.Is(err, errNotRunning) {
		return r.withoutServer(definitions)
	} else if err != nil {
		return err
	}
	r.noteConversion(definitions)
	r.display.Title("Installing the kinds of %s on %s", r.project.Name, r.target.Title)
	var outcomes []deploy.Outcome
	limited, cancel := r.within(ctx)
	defer cancel()
	err = r.step("applying the CRDs", func() (done string, err error) {
		outcomes, err = r.server.Apply(limited, definitions, r.options())
		return r.established(outcomes), err
	})
	if err != nil {
		return r.explainDeploy(ctx, err)
	}
	return r.conclude(outcomes)
}

func (r *projectRun) established(outcomes []deploy.Outcome) string {
	if r.dryRun {
		return "dry run: nothing was changed"
	}
	return "CRDs established: " + count(outcomes)
}

func (r *projectRun) uninstall(ctx context.Context, o uninstallOptions) error {
	definitions, err := r.definitions(ctx)
	if err != nil {
		return err
	}
	if r.format == manifestYAML {
		return errors.Join(r.printManifests(definitions), r.conclude(nil))
	}
	if err := r.reach(ctx, false); errors.Is(err, errNotRunning) {
		return r.withoutServer(definitions)
	} else if err != nil {
		return err
	}
	return r.remove(ctx, definitions, definitions, o)
}

// remove deletes objects, once the user knows what goes with the definitions among them.
func (r *projectRun) remove(ctx context.Context, objects, definitions []*unstructured.Unstructured, o uninstallOptions) error {
	limited, cancel := r.within(ctx)
	defer cancel()
	left, err := r.server.Instances(limited, definitions)
	if err != nil {
		return r.explainDeploy(ctx, err)
	}
	if len(left) > 0 {
		if err := r.mayDelete(ctx, left, o.force); err != nil {
			return err
		}
	}
	r.display.Title("Removing %s from %s", r.project.Name, r.target.Title)
	var outcomes []deploy.Outcome
	err = r.step("deleting", func() (done string, err error) {
		outcomes, err = r.server.Delete(limited, objects, r.options())
		if r.dryRun {
			return "dry run: nothing was changed", err
		}
		if n := count(outcomes); strings.Contains(n, string(deploy.Deleted)) {
			return "gone: " + n, err
		}
		return "", err
	})
	if err != nil {
		return r.explainDeploy(ctx, err)
	}
	missing := 0
	for _, one := range outcomes {
		if one.Action == deploy.Absent {
			missing++
		}
	}
	switch {
	case missing > 0 && !o.ignoreNotFound:
		return errors.Join(r.conclude(outcomes), fmt.Errorf("%d of %d objects were not there", missing, len(outcomes)))
	case missing == len(outcomes):
		r.note("there was nothing of %s on %s", r.project.Name, r.target.Title)
		if r.format == manifestText {
			outcomes = nil // a table of nothing
		}
	}
	return r.conclude(outcomes)
}

// mayDelete finds out whether the objects that go with their kinds may go.
func (r *projectRun) mayDelete(ctx context.Context, left []deploy.Remainder, force bool) error {
	var all []string
	for _, one := range left {
		all = append(all, one.String())
	}
	what := strings.Join(all, "; ")
	switch {
	case force:
		return nil
	case r.dryRun:
		r.note("what goes with the kinds, and needs --force: %s", what)
		return nil
	case r.confirm(ctx, fmt.Sprintf("There is %s on %s, to be deleted with the kinds.", what, r.target.Title)):
		return nil
	default:
		return hint.With(fmt.Errorf("nothing was deleted, because there is %s on %s", what, r.target.Title),
			"delete them too: --force")
	}
}

// confirm asks a person. Where there is none, the answer is no.
func (a verbs) confirm(ctx context.Context, text string) bool {
	if a.Keys == nil || a.ErrWidth == 0 {
		return false
	}
	keys, release, err := a.Keys()
	if err != nil {
		return false
	}
	defer release()
	fmt.Fprintf(a.Err, "%s\r\nGo on? [y/N] ", text)
	answer := ""
	select {
	case answer = <-keys:
	case <-ctx.Done():
	}
	fmt.Fprint(a.Err, "\r\n")
	return answer == "y" || answer == "Y"
}
