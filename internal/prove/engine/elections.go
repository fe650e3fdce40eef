// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
	"github.com/opdock/opdock/why"
)

// isElection reports whether a write only renews who the leader is, in an object that is no Lease.
func isElection(r *lens.Request) bool {
	if r.Change == nil || len(r.Change.Fields) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Change.Fields, func(one why.Change) bool { return !strings.Contains(one.Path, world.LeaderAnnotation) })
}

// elections are the objects by which an operator elects its leader. They are learned from how it renews them, and
// known in all later runs of a campaign.
type elections struct {
	mutex sync.Mutex
	known map[lens.Resource]bool
}

// see learns from a request of the operator.
func (e *elections) see(r *lens.Request) {
	if e == nil || !r.IsWrite() || r.Refused() || r.Resource.Name == "" || r.Resource.Resource != "leases" && !isElection(r) {
		return
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.known == nil {
		e.known = map[lens.Resource]bool{}
	}
	e.known[electionOf(r)] = true
}

// has reports whether a request is about an election.
func (e *elections) has(r *lens.Request) bool {
	if e == nil {
		return false
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.known[electionOf(r)]
}

// shows reports whether a watch event is only about an election.
func (e *elections) shows(d *lens.Delivery) bool {
	if d.Change.RenewsLeader() {
		return true
	}
	if e == nil || d.Object == nil {
		return false
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.known[lens.Resource{Group: d.Resource.Group, Resource: d.Resource.Resource, Namespace: d.Object.Namespace, Name: d.Object.Name}]
}

func electionOf(r *lens.Request) lens.Resource {
	name := r.Resource.Name
	if name == "" && r.Object != nil {
		name = r.Object.Name // created
	}
	return lens.Resource{Group: r.Resource.Group, Resource: r.Resource.Resource, Namespace: r.Resource.Namespace, Name: name}
}

func (e *elections) all() (all []lens.Resource) {
	if e == nil {
		return nil
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for one := range e.known {
		all = append(all, one)
	}
	return all
}

// resign ends the leadership of an operator that was killed, or that ran before the cluster was copied. Its successor
// would otherwise wait until the lease expires, usually for 15 seconds, and do nothing else.
func (e *elections) resign(ctx context.Context, c client.Client) error {
	for _, one := range e.all() {
		var object client.Object
		switch one.Resource {
		case "leases":
			object = &coordinationv1.Lease{}
		case "configmaps":
			object = &corev1.ConfigMap{}
		case "endpoints":
			object = &corev1.Endpoints{} //nolint:staticcheck // operators of some years ago use them
		default:
			continue
		}
		if err := resignIn(ctx, c, client.ObjectKey{Namespace: one.Namespace, Name: one.Name}, object); err != nil {
			return fmt.Errorf("ending the leadership of the operator in %s %s/%s: %w", one.Resource, one.Namespace, one.Name, err)
		}
	}
	return nil
}

func resignIn(ctx context.Context, c client.Client, key client.ObjectKey, object client.Object) error {
	if err := c.Get(ctx, key, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	var changed bool
	if lease, ok := object.(*coordinationv1.Lease); ok {
		changed = lease.Spec.HolderIdentity != nil
		lease.Spec.HolderIdentity = nil
	} else {
		changed = resignAnnotation(object)
	}
	if !changed {
		return nil
	}
	if err := c.Update(ctx, object); err != nil && !apierrors.IsConflict(err) {
		return err
	}
	return nil // after a conflict, there is a leader that runs
}

// resignAnnotation removes the holder from the record that an annotation contains.
func resignAnnotation(object client.Object) (changed bool) {
	const holder = "holderIdentity"
	annotations, record := object.GetAnnotations(), map[string]any{}
	if json.Unmarshal([]byte(annotations[world.LeaderAnnotation]), &record) != nil || record[holder] == "" {
		return false
	}
	record[holder] = ""
	text, err := json.Marshal(record)
	if err != nil {
		return false
	}
	annotations[world.LeaderAnnotation] = string(text)
	object.SetAnnotations(annotations)
	return true
}
