// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/world"
)

// A state does not have all objects of the scenario: kinds that others write constantly, such as Lease, are not watched, and a
// PriorityClass is left out unless the operator wrote it. Disturbances that create and delete objects of the scenario need them all.

// unseen returns the objects of the scenario, besides the custom resources, that exist although a state does not have them.
func (c *campaign) unseen(ctx context.Context, objects client.Client, state world.State) (world.State, error) {
	found := world.State{}
	for _, other := range c.o.Others {
		if _, seen := find(state, other); seen != nil {
			continue
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(other.GroupVersionKind())
		err := objects.Get(ctx, client.ObjectKeyFromObject(other), live)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err): // a later step brings it, or its kind
		case err != nil:
			return nil, fmt.Errorf("reading %s %s: %w", other.GetKind(), other.GetName(), err)
		default:
			found[world.Key{Group: live.GroupVersionKind().Group, Kind: live.GetKind(), Namespace: live.GetNamespace(), Name: live.GetName()}] = live
		}
	}
	return found, nil
}

// scene returns the current state, with all objects of the scenario.
func (r *run) scene(ctx context.Context) (world.State, error) {
	state := r.world.State()
	unseen, err := r.campaign.unseen(ctx, r.objects, state)
	maps.Copy(state, unseen)
	return state, err
}

// sceneAt returns a state that a step led to, with all objects of the scenario that were not there before it.
func (c *campaign) sceneAt(step int, state world.State) world.State {
	state = maps.Clone(state)
	for key, object := range c.reference[step].unseen {
		if _, before := c.unseenBefore[key]; !before {
			state[key] = object
		}
	}
	return state
}

// find finds an object of the scenario.
func (s *stage) find(object *unstructured.Unstructured) *unstructured.Unstructured {
	if _, seen := find(s.state, object); seen != nil {
		return seen
	}
	_, unseen := find(s.unseen, object)
	return unseen
}
