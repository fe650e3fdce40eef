// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/project"
)

func (r *projectRun) uninstall(ctx context.Context, o uninstallOptions) error {
	return r.remove(ctx, o, r.definitions, func(i *apply.Inventory) []*unstructured.Unstructured {
		definitions, _ := apart(apply.Objects(i.Members()))
		return definitions
	})
}

func (r *projectRun) undeploy(ctx context.Context, o uninstallOptions) error {
	return r.remove(ctx, o, r.manifests, func(i *apply.Inventory) []*unstructured.Unstructured { return apply.Objects(i.Parts[apply.PartDeploy]) })
}

// apart returns the CRDs among the objects, and the others.
func apart(objects []*unstructured.Unstructured) (definitions, others []*unstructured.Unstructured) {
	for _, object := range objects {
		if project.IsCRD(object) {
			definitions = append(definitions, object)
		} else {
			others = append(others, object)
		}
	}
	return definitions, others
}

// remove deletes what the inventory of the project says, or what the manifests say now if there is none.
func (r *projectRun) remove(ctx context.Context, o uninstallOptions, read func(context.Context) ([]*unstructured.Unstructured, error),
	recorded func(*apply.Inventory) []*unstructured.Unstructured,
) error {
	chosen := func(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
		if _, others := apart(objects); o.keepCRDs {
			return others
		}
		return objects
	}
	reached := errNotRunning
	if r.format != manifestYAML {
		if reached = r.reach(ctx, false); reached != nil && !errors.Is(reached, errNotRunning) {
			return reached
		}
	}
	if reached != nil {
		objects, err := read(ctx)
		switch {
		case err != nil:
			return err
		case r.format == manifestYAML:
			return errors.Join(r.printManifests(chosen(objects)), r.conclude(nil))
		default:
			return r.withoutServer(chosen(objects))
		}
	}
	inventory, err := r.server.Inventory(ctx, r.set(""))
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	var objects []*unstructured.Unstructured
	if inventory != nil {
		objects = recorded(inventory)
	}
	known := len(objects) > 0
	if !known {
		if objects, err = read(ctx); err != nil {
			return err
		}
	}
	return r.removeObjects(ctx, objects, chosen(objects), known, o)
}

// removeObjects deletes the chosen ones of the objects, once the user knows what goes with the definitions among them.
func (r *projectRun) removeObjects(ctx context.Context, objects, chosen []*unstructured.Unstructured, known bool, o uninstallOptions) error {
	limited, cancel := r.within(ctx)
	defer cancel()
	definitions, _ := apart(chosen)
	left, err := r.server.Instances(limited, r.unshared(definitions))
	if err != nil {
		return r.explainDeploy(ctx, err)
	}
	if len(left) > 0 {
		if err := r.mayDelete(ctx, left, o.force); err != nil {
			return err
		}
	}
	if o.keepCRDs {
		if err := r.keepReadable(limited, objects, chosen, o.force); err != nil {
			return err
		}
	}
	r.display.Title("Removing %s from %s", r.project.Name, r.target.Title)
	var outcomes []apply.Outcome
	err = r.step("deleting", func() (done string, err error) {
		outcomes, err = r.server.Delete(limited, chosen, r.options(""))
		if r.dryRun {
			return "dry run: nothing was changed", err
		}
		if n := count(outcomes); strings.Contains(n, string(apply.Deleted)) {
			return "gone: " + n, err
		}
		return "", err
	})
	if err != nil {
		return r.explainDeploy(ctx, err)
	}
	r.noteKept(outcomes)
	return r.concludeRemoval(ctx, outcomes, known, o)
}

func (r *projectRun) concludeRemoval(ctx context.Context, outcomes []apply.Outcome, known bool, o uninstallOptions) error {
	missing := 0
	for _, one := range outcomes {
		if one.Action == apply.Absent {
			missing++
		}
	}
	switch {
	case missing > 0 && !o.ignoreNotFound:
		return errors.Join(r.conclude(outcomes), fmt.Errorf("%d of %d objects did not exist", missing, len(outcomes)))
	case missing == len(outcomes):
		r.note("no objects of %s found in %s", r.project.Name, r.target.Title)
		if r.format == manifestText {
			outcomes = nil // a table of nothing
		}
	case !known:
		r.note("no inventory of %s in %s, so the objects of the manifests were deleted", r.project.Name, r.target.Title)
	}
	if !known {
		r.noteElsewhere(ctx)
	}
	return r.conclude(outcomes)
}

// keepReadable makes sure that custom resources can be read after the process is gone that converts between their versions.
// Without conversion, every request for another version than the stored one fails, and a namespace with such objects is never
// deleted.
func (r *projectRun) keepReadable(ctx context.Context, objects, going []*unstructured.Unstructured, force bool) error {
	definitions, _ := apart(objects)
	unserved, err := r.server.Unserved(ctx, r.unshared(definitions), func(service apply.ID) bool {
		// Pods of Opdock's clusters are simulated, and serve nothing.
		return !r.target.Ours && !slices.ContainsFunc(going, func(object *unstructured.Unstructured) bool {
			id := apply.IDOf(object)
			return id == service || id == apply.ID{Kind: "Namespace", Name: service.Namespace}
		})
	})
	if err != nil {
		return err
	}
	for _, one := range unserved {
		switch {
		case r.target.Ours && r.dryRun:
			r.note("CRD %s would be kept without conversion, because no process serves its webhook", one.GetName())
		case r.target.Ours:
			if err := r.server.DropConversion(ctx, one); err != nil {
				return err
			}
			r.note("CRD %s is kept without conversion, because no process serves its webhook; %s dev or deploy set it again", one.GetName(), r.Program)
		case r.dryRun || force:
			r.note("CRD %s: no process converts between its versions once the operator is deleted, so only the stored version works", one.GetName())
		default:
			left, err := r.server.Instances(ctx, []*unstructured.Unstructured{one})
			if err != nil {
				return err
			}
			if len(left) == 0 {
				continue
			}
			return hint.With(fmt.Errorf("nothing was deleted: the operator converts between the versions of CRD %s, and without it %s could not be read or deleted", one.GetName(), left[0]),
				"delete the custom resources first, or store and serve a single version", "to delete the operator anyway: --force")
		}
	}
	return nil
}
