// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/project"
)

type deployOptions struct {
	projectOptions
	image    string
	webhooks bool
}

// NewDeploy returns the verb deploy.
func NewDeploy(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o deployOptions
	cmd := &cobra.Command{
		Use:   "deploy [--image IMAGE] [FLAG]...",
		Short: "Deploy a project to a cluster",
		Long: `Applies all manifests of the Go operator project in the current directory with server-side apply, in
dependency order. Returns when the CRDs are established and the operator is available. It does what "make
deploy" does in kubebuilder projects, but does not write the image into a file. Objects that an earlier
deploy applied and that are no longer in the manifests are pruned, except CRDs, namespaces and volumes.

The manifests come from the kustomization in config/default. In projects with another layout, they come
from the YAML files in deploy and similar directories, without samples. Generated manifests are updated
first. If the operator does not become available within --timeout, the reason is shown from its pods.

By default the project is deployed to a cluster of Opdock, which is started if it is not running and keeps
running. Use --kubeconfig or --context to deploy to another cluster. Pods in a cluster of Opdock are
simulated: the server checks every object, but no container runs. Webhooks, and objects whose kinds the
cluster does not have, are therefore left out. Use "opdock dev" to run the operator itself, and "opdock
build" to build its image.`,
		Example: `  opdock deploy                                    # a rehearsal: does the server accept all manifests?
  opdock deploy --image team/harbour:v1 --context staging
  opdock deploy --image team/harbour:v2 --context staging --dry-run
  opdock deploy --image team/harbour:v1 -o yaml > install.yaml`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkImage(cmd, o.image); err != nil {
				return err
			}
			r, err := a.newProjectRun(cmd, o.projectOptions)
			if err != nil {
				return err
			}
			return r.deploy(cmd.Context(), o)
		},
	}
	a.addProjectFlags(cmd, &o.projectOptions, "name of the cluster; started if it is not running")
	a.addGenerateFlag(cmd, &o.projectOptions)
	a.addNamespaceFlag(cmd, &o.projectOptions)
	cmd.Flags().StringVar(&o.image, "image", "", "image of the operator, instead of the image in the manifests")
	cmd.Flags().BoolVar(&o.webhooks, "webhooks", false, "also apply webhook configurations to a cluster of Opdock, where no process serves them")
	a.Complete(cmd, "image", func() []string { return nil })
	return cmd
}

// NewUndeploy returns the verb undeploy.
func NewUndeploy(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o uninstallOptions
	cmd := &cobra.Command{
		Use:   "undeploy [FLAG]...",
		Short: "Remove a project from a cluster",
		Long: `Deletes everything that "opdock deploy" applied and returns when it is gone. What was applied is known from
an inventory on the cluster, even if the manifests have changed since. Without an inventory, for example
after "make deploy", the objects of the manifests are deleted, as "make undeploy" does.

Webhooks are deleted first, then the CRDs with their custom resources, while the operator can still clean
up after them. Then the operator is deleted, and the namespace last. Objects that a running "opdock dev"
uses on the same cluster are kept.

Deleting a CRD deletes all its custom resources. If there are any, nothing is deleted unless you set --force
or confirm on the terminal. With --keep-crds, the CRDs and their custom resources are kept.`,
		Example: `  opdock undeploy
  opdock undeploy --keep-crds --context staging
  opdock undeploy --dry-run`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.newProjectRun(cmd, o.projectOptions)
			if err != nil {
				return err
			}
			return r.undeploy(cmd.Context(), o)
		},
	}
	a.addProjectFlags(cmd, &o.projectOptions, "name of the cluster; it must be running")
	a.addNamespaceFlag(cmd, &o.projectOptions)
	a.addRemovalFlags(cmd, &o)
	cmd.Flags().BoolVar(&o.keepCRDs, "keep-crds", false, "keep the CRDs and their custom resources")
	return cmd
}

// imageReference is a name with an optional tag and an optional digest, as the distribution specification has it.
var imageReference = regexp.MustCompile(`^([a-zA-Z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*` +
	`(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)

func checkImage(cmd *cobra.Command, image string) error {
	if cmd.Flags().Changed("image") && !imageReference.MatchString(image) {
		return &cmdutil.UsageError{
			Message: fmt.Sprintf("--image cannot be %q: use NAME, NAME:TAG or NAME@DIGEST, with a lower case name", image),
			Hints:   []string{cmdutil.SeeHelp(cmd)},
		}
	}
	return nil
}

// manifests are all of the project's.
func (r *projectRun) manifests(ctx context.Context) ([]*unstructured.Unstructured, error) {
	manifests, err := r.project.Manifests(ctx)
	if err != nil {
		return nil, err
	}
	if len(project.Workloads(manifests)) == 0 {
		return nil, hint.With(fmt.Errorf("nothing to deploy: the manifests of %s contain no Deployment, StatefulSet or DaemonSet", r.project.Name),
			"to install only its CRDs:  "+cmdutil.ShellQuote(r.Program)+" install", "to run it on this machine: "+cmdutil.ShellQuote(r.Program)+" dev")
	}
	return manifests, nil
}

func (r *projectRun) deploy(ctx context.Context, o deployOptions) error {
	if err := r.generated(ctx); err != nil {
		return err
	}
	manifests, err := r.manifests(ctx)
	if err != nil {
		return err
	}
	if o.image != "" {
		if manifests, err = project.WithImage(manifests, o.image); err != nil {
			return err
		}
	}
	image, known := project.Image(manifests)
	if known && project.IsPlaceholder(image) && r.Foreign() && r.format != manifestYAML {
		return &cmdutil.UsageError{
			Message: fmt.Sprintf("--image is required: %q in the manifests is only a placeholder", image),
			Hints:   []string{"build one: " + cmdutil.ShellQuote(r.Program) + " build --image NAME:TAG", cmdutil.SeeHelp(r.cmd)},
		}
	}
	if r.format == manifestYAML {
		return errors.Join(r.printManifests(apply.Order(manifests)), r.conclude(nil))
	}
	if err := r.reach(ctx, true); errors.Is(err, errNotRunning) {
		return r.withoutServer(apply.Order(manifests))
	} else if err != nil {
		return err
	}
	if r.target.Ours {
		if manifests, err = r.withoutUnserved(manifests, o.webhooks); err != nil {
			return err
		}
	}
	r.noteSessions(manifests)
	r.noteConversion(manifests)
	r.display.Title("Deploying %s to %s", r.project.Name, r.target.Title)
	return r.applyAndAwait(ctx, manifests)
}

func (r *projectRun) applyAndAwait(ctx context.Context, manifests []*unstructured.Unstructured) error {
	var outcomes []apply.Outcome
	limited, cancel := r.within(ctx)
	defer cancel()
	err := r.step("applying the manifests", func() (done string, err error) {
		outcomes, err = r.server.Apply(limited, manifests, r.options(apply.PartDeploy))
		if r.dryRun {
			return "dry run: nothing was changed", err
		}
		return "manifests applied: " + count(outcomes), err
	})
	if err == nil && !r.dryRun {
		err = r.step("waiting for the operator to become available", func() (string, error) {
			return "operator available", r.server.AwaitReady(limited, project.Workloads(manifests), r.Namespace)
		})
	}
	if err != nil {
		return r.explainDeploy(ctx, err)
	}
	if r.target.Ours && !r.dryRun {
		r.note("pods of %s are simulated, so the operator does not run there; to run the operator itself: %s dev",
			r.target.Title, cmdutil.ShellQuote(r.Program))
	}
	return r.conclude(outcomes)
}

// withoutUnserved leaves out objects that have no effect with simulated pods. Webhooks would do harm: the server
// would call them without success, and refuse requests.
func (r *projectRun) withoutUnserved(manifests []*unstructured.Unstructured, webhooks bool) ([]*unstructured.Unstructured, error) {
	unknown, err := r.server.Unknown(manifests)
	if err != nil {
		return nil, err
	}
	var kept []*unstructured.Unstructured
	for _, object := range manifests {
		switch {
		case slices.Contains(unknown, object):
			r.note("skipped %s %s: the cluster does not have kind %s in %s", object.GetKind(), object.GetName(), object.GetKind(), object.GetAPIVersion())
		case project.IsWebhookConfiguration(object) && !webhooks:
			r.note("skipped %s %s: no process serves webhooks of simulated pods; use --webhooks to apply it", object.GetKind(), object.GetName())
		default:
			kept = append(kept, object)
		}
	}
	return kept, nil
}

// noteConversion adds a note that no process converts between the versions of a kind with simulated pods.
func (r *projectRun) noteConversion(objects []*unstructured.Unstructured) {
	for _, object := range objects {
		strategy, _, _ := unstructured.NestedString(object.Object, "spec", "conversion", "strategy")
		_, served := r.shared()[apply.IDOf(object)]
		if r.target.Ours && project.IsCRD(object) && strategy == "Webhook" && !served {
			r.note("CRD %s: no process serves its conversion webhook, so only the stored version works; use %s dev to run the webhook",
				object.GetName(), cmdutil.ShellQuote(r.Program))
		}
	}
}
