// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// record is what happens to the inventory while a set is applied. A nil record remembers nothing.
type record struct {
	server *Server
	set    *Set
	stored []Member        // as the cluster has it
	now    map[ID]Member   // the new members of the set
	wanted map[ID]struct{} // the objects of the plan
}

// begin reads the inventory and adds the objects before they are applied, so a killed process
// leaves no unknown objects.
func (s *Server) begin(ctx context.Context, p plan, o Options) (*record, error) {
	if o.Set == nil {
		return nil, nil //nolint:nilnil // a nil record remembers nothing
	}
	inventory, err := s.Inventory(ctx, o.Set)
	if apierrors.IsForbidden(err) {
		o.note("the inventory could not be written, so the applied objects are not pruned later: %v", err)
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, err
	}
	r := &record{server: s, set: o.Set, stored: inventory.Parts[o.Set.Part], now: map[ID]Member{}, wanted: map[ID]struct{}{}}
	for _, one := range r.stored {
		r.now[one.ID] = one
	}
	for _, object := range p.objects {
		if stageOf(object) == stageNamespaces && slices.Contains(p.made, object.GetName()) {
			continue
		}
		id := IDOf(object)
		r.wanted[id] = struct{}{}
		known, found := r.now[id]
		if !found {
			known = Member{ID: id}
		}
		known.Version = object.GroupVersionKind().Version
		r.now[id] = known
	}
	if o.DryRun {
		r.server = nil
		return r, nil
	}
	if slices.Contains(p.made, o.Set.Namespace) {
		// It does not exist yet, so the inventory cannot be the first.
		if _, _, err := s.applyOne(ctx, namespace(o.Set.Namespace), o); err != nil {
			return nil, err
		}
	}
	err = r.save(ctx)
	if apierrors.IsForbidden(err) {
		o.note("the inventory could not be written, so the applied objects are not pruned later: %v", err)
		r.server = nil
		return r, nil
	}
	return r, err
}

// applied takes down that an object was applied.
func (r *record) applied(live *unstructured.Unstructured) {
	if r == nil {
		return
	}
	if _, wanted := r.wanted[IDOf(live)]; wanted {
		r.now[IDOf(live)] = memberOf(live)
	}
}

// outdated are the members that the plan does not have.
func (r *record) outdated() []Member {
	if r == nil {
		return nil
	}
	var all []Member
	for _, one := range r.members() {
		if _, wanted := r.wanted[one.ID]; !wanted {
			all = append(all, one)
		}
	}
	return all
}

// forget records that an object is no longer part of the set.
func (r *record) forget(id ID) { delete(r.now, id) }

func (r *record) members() []Member {
	all := make([]Member, 0, len(r.now))
	for _, one := range r.now {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Member) int {
		return strings.Compare(a.Group+" "+a.String(), b.Group+" "+b.String())
	})
	return all
}

// save writes the inventory if it differs from the one on the cluster.
func (r *record) save(ctx context.Context) error {
	if r == nil || r.server == nil {
		return nil
	}
	members := r.members()
	if slices.Equal(members, r.stored) {
		return nil
	}
	// The inventory is written even if the user has just canceled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTimeout)
	defer cancel()
	err := r.server.Update(ctx, r.set, func(i *Inventory) { i.Parts[r.set.Part] = members })
	if err == nil {
		r.stored = members
	}
	return err
}
