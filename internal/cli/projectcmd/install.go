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

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
)

// NewInstall returns the verb install.
func NewInstall(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o projectOptions
	cmd := &cobra.Command{
		Use:   "install [FLAG]...",
		Short: "Install the CRDs of a project in a cluster",
		Long: `Applies the CRDs of the Go operator project in the current directory with server-side apply. Returns when
custom resources can be created. It does what "make install" does in kubebuilder projects.

The CRDs come from the kustomization in config/crd. In projects with another layout, they come from the
YAML files in config, deploy, artifacts, manifests, crds and the crds directories of charts. If types or
markers have changed since the CRDs were generated, they are generated first.

By default the CRDs are installed in a cluster of Opdock, which is started if it is not running and keeps
running. Use --kubeconfig or --context to select another cluster. If the server rejects a CRD, the command
shows the line of the Go type that is responsible, if it can be found.`,
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
	a.addProjectFlags(cmd, &o, "name of the cluster; started if it is not running")
	a.addGenerateFlag(cmd, &o)
	return cmd
}

type uninstallOptions struct {
	projectOptions
	ignoreNotFound bool
	force          bool
	keepCRDs       bool
}

// NewUninstall returns the verb uninstall.
func NewUninstall(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o uninstallOptions
	cmd := &cobra.Command{
		Use:   "uninstall [FLAG]...",
		Short: "Remove the CRDs of a project from a cluster",
		Long: `Deletes the CRDs of the Go operator project in the current directory and returns when they are gone. It
does what "make uninstall" does in kubebuilder projects. CRDs that "opdock install" or "opdock deploy"
applied are known from an inventory on the cluster, even if the project no longer has them.

Deleting a CRD deletes all its custom resources. If there are any, nothing is deleted unless you set --force
or confirm on the terminal.`,
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
	a.addProjectFlags(cmd, &o.projectOptions, "name of the cluster; it must be running")
	a.addRemovalFlags(cmd, &o)
	return cmd
}

func (a verbs) addRemovalFlags(cmd *cobra.Command, o *uninstallOptions) {
	cmd.Flags().BoolVar(&o.ignoreNotFound, "ignore-not-found", true, "ignore objects that do not exist")
	cmd.Flags().BoolVar(&o.force, "force", false, "delete CRDs even if they have custom resources")
}

// definitions are the project's CRDs, of which there has to be one.
func (r *projectRun) definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	definitions, err := r.project.CRDs(ctx)
	if err != nil {
		return nil, err
	}
	if len(definitions) == 0 {
		return nil, hint.With(r.project.NoCRDs(),
			"if the project has types with markers: "+cmdutil.ShellQuote(r.Program)+" generate --dir "+cmdutil.ShellQuote(r.dir))
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
	r.noteSessions(definitions)
	r.noteConversion(definitions)
	r.display.Title("Installing the CRDs of %s in %s", r.project.Name, r.target.Title)
	var outcomes []apply.Outcome
	limited, cancel := r.within(ctx)
	defer cancel()
	err = r.step("applying the CRDs", func() (done string, err error) {
		outcomes, err = r.server.Apply(limited, definitions, r.options(apply.PartInstall))
		return r.established(outcomes), err
	})
	if err != nil {
		return r.explainDeploy(ctx, err)
	}
	return r.conclude(outcomes)
}

func (r *projectRun) established(outcomes []apply.Outcome) string {
	if r.dryRun {
		return "dry run: nothing was changed"
	}
	return "CRDs established: " + count(outcomes)
}

// mayDelete finds out whether the objects that go with their kinds may go.
func (r *projectRun) mayDelete(ctx context.Context, left []apply.Remainder, force bool) error {
	var all []string
	for _, one := range left {
		all = append(all, one.String())
	}
	what := strings.Join(all, "; ")
	switch {
	case force:
		return nil
	case r.dryRun:
		r.note("custom resources that would be deleted with their CRDs (needs --force): %s", what)
		return nil
	case r.confirm(ctx, fmt.Sprintf("Deleting the CRDs also deletes %s in %s.", what, r.target.Title)):
		return nil
	default:
		return hint.With(fmt.Errorf("nothing was deleted: deleting the CRDs would also delete %s in %s", what, r.target.Title),
			"to delete them too: --force")
	}
}

// confirm asks the user. Without a terminal, the answer is no.
func (a verbs) confirm(ctx context.Context, text string) bool {
	if a.Keys == nil || a.ErrWidth == 0 {
		return false
	}
	keys, release, err := a.Keys()
	if err != nil {
		return false
	}
	defer release()
	fmt.Fprintf(a.Err, "%s\r\nContinue? [y/N] ", text)
	answer := ""
	select {
	case answer = <-keys:
	case <-ctx.Done():
	}
	fmt.Fprint(a.Err, "\r\n")
	return answer == "y" || answer == "Y"
}
