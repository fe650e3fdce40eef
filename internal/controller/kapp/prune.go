// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	"github.com/opdock/opdock/internal/flow"
)

// owned is an object that belongs to the KAPP, whether the spec still has it or not.
type owned struct {
	resource

	object    client.Object
	component string
	dependsOn []string
}

// doomed is an object to delete, and its progress.
type doomed struct {
	owned

	message string
}

// findOwned lists everything that belongs to the KAPP.
func (r *Reconciler) findOwned(ctx context.Context, s *scope) error {
	for _, kind := range r.kinds {
		if !kind.installed.Load() {
			continue
		}
		list := kind.newList()
		if err := s.pass.Owned(ctx, list); err != nil {
			return fmt.Errorf("listing components of kind %s: %w", kind.Kind, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			component, dependencies := recorded(object)
			s.owned = append(s.owned, owned{
				resource: resource{kind: kind, name: object.GetName()},
				object:   object, component: component, dependsOn: dependencies,
			})
			return nil
		})
		if err != nil {
			return fmt.Errorf("reading components of kind %s: %w", kind.Kind, err)
		}
	}
	slices.SortFunc(s.owned, func(a, b owned) int {
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.String(), b.String()))
	})
	return nil
}

// prune deletes objects that are no longer in the spec, in reverse dependency order.
func (r *Reconciler) prune(ctx context.Context, s *scope) error {
	wanted := map[string]bool{}
	byName := map[string]*part{}
	for _, p := range s.parts {
		byName[p.component.Name] = p
		if p.resource != nil {
			wanted[p.resource.String()] = true
		}
	}
	for _, object := range s.owned {
		if wanted[object.String()] {
			continue
		}
		if successor := byName[object.component]; successor != nil {
			// The component has another object now. Its dependents stay, and so does this object until the new one
			// exists.
			if successor.exists {
				if err := s.doom(ctx, object, nil); err != nil {
					return err
				}
			}
			continue
		}
		if err := s.doom(ctx, object, s.recorded().dependents(object.component)); err != nil {
			return err
		}
	}
	return nil
}

// finalize deletes everything, in the reverse order of the dependencies.
func (r *Reconciler) finalize(ctx context.Context, pass *flow.Pass, kapp *kappv1.KAPP) error {
	if controllerutil.ContainsFinalizer(kapp, metav1.FinalizerOrphanDependents) {
		// The components are to stay. The garbage collector releases them.
		return nil
	}
	s := &scope{kapp: kapp, pass: pass}
	if err := r.findOwned(ctx, s); err != nil {
		return err
	}
	for _, object := range s.owned {
		if err := s.doom(ctx, object, s.recorded().dependents(object.component)); err != nil {
			return err
		}
	}
	setStatus(s)
	if len(s.doomed) > 0 {
		return flow.Waiting("Deleting", "%s", s.deleting())
	}
	return nil
}

// recorded returns the dependencies that existing objects record. For objects that were just applied, it uses the
// spec, because the cache may be stale.
func (s *scope) recorded() graph {
	applied := map[string]*part{}
	for _, p := range s.parts {
		if p.exists {
			applied[p.resource.String()] = p
		}
	}
	result := graph{}
	for _, object := range s.owned {
		if p := applied[object.String()]; p != nil {
			object.component, object.dependsOn = p.component.Name, dependsOn(p.component)
		}
		result[object.component] = append(result[object.component], object.dependsOn...)
	}
	return result
}

// doom deletes an object once its dependents are gone.
func (s *scope) doom(ctx context.Context, object owned, before []string) error {
	end := doomed{owned: object, message: "it is being deleted"}
	if len(before) > 0 && object.object.GetDeletionTimestamp().IsZero() {
		end.message = "deleted after " + strings.Join(before, ", ")
		s.doomed = append(s.doomed, end)
		return nil
	}
	policy := metav1.DeletePropagationBackground
	if len(object.dependsOn) > 0 {
		// The children of the component are deleted first, so its dependencies exist until its last pod has ended.
		policy = metav1.DeletePropagationForeground
	}
	named := object.kind.new()
	named.SetName(object.name)
	gone, err := s.pass.Delete(ctx, named, client.PropagationPolicy(policy),
		// A deletion of the KAPP may have released it since it was last seen, and then it must stay.
		client.Preconditions{ResourceVersion: ptr.To(object.object.GetResourceVersion())})
	if err != nil || gone {
		return err
	}
	s.doomed = append(s.doomed, end)
	return s.pass.WatchEnd(ctx, named)
}

// deleting names the objects that are being deleted.
func (s *scope) deleting() string {
	var names []string
	for _, object := range s.doomed {
		names = append(names, object.String())
	}
	return "Deleting " + strings.Join(names, ", ")
}
