// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// An operator may repair what others have broken, but it must not delete and create again what was not broken: at the end everything
// looks as before, and what the objects held is gone.

// mayReplace reports whether an object may be replaced by another of the same name.
type mayReplace func(key world.Key, object *unstructured.Unstructured) bool

// expendable are resources of which operators and controllers replace objects as a matter of course: what fails is tried again.
var expendable = []string{"pods", "jobs", "replicasets", "persistentvolumes", "volumeattachments", "certificatesigningrequests"}

// nothing is for a disturbance after which the operator may replace no object.
func nothing(world.Key, *unstructured.Unstructured) bool { return false }

// onlyWith is for a change of one object. That and what it owns may be replaced, and what may have been made of its content.
func onlyWith(target *unstructured.Unstructured, before world.State) mayReplace {
	gone := map[types.UID]bool{target.GetUID(): true}
	withOwned(gone, before)
	return func(key world.Key, object *unstructured.Unstructured) bool {
		return gone[object.GetUID()] || key.Group == "" && (key.Resource == "secrets" || key.Resource == "configmaps")
	}
}

// withOwned adds what the objects with these UIDs own, and what that owns.
func withOwned(uids map[types.UID]bool, state world.State) {
	for more := true; more; {
		more = false
		for _, object := range state {
			owned := slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return uids[owner.UID] })
			if owned && !uids[object.GetUID()] {
				uids[object.GetUID()], more = true, true
			}
		}
	}
}

// whatFails is for pods that fail. A custom resource may stand for one of them, and a claim may be bound to a node that is lost. What a
// pod owns goes with it.
func whatFails(variant string, before world.State) mayReplace {
	owned := map[types.UID]bool{}
	for key, object := range before {
		if key.Group == "" && key.Resource == "pods" {
			owned[object.GetUID()] = true
		}
	}
	withOwned(owned, before)
	return func(key world.Key, object *unstructured.Unstructured) bool {
		return !isBuiltIn(key.Group) || variant == nodeLost && key.Resource == "persistentvolumeclaims" || owned[object.GetUID()]
	}
}

func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".x-k8s.io")
}

// replaced finds objects that were deleted and created again under the same name.
func (c *campaign) replaced(step int, before, after world.State, may mayReplace) (wrong []*Observation) {
	for _, key := range sortedKeys(before) {
		was, is := before[key], after[key]
		name, random := compare.Name(key, was)
		_, foreign := c.before[key]
		if is == nil || is.GetUID() == was.GetUID() || random || foreign || ofController(was) || slices.Contains(expendable, key.Resource) {
			continue
		}
		if was.GetDeletionTimestamp() != nil || c.mask.HidesObject(name) || c.own[name] || may(key, was) {
			continue
		}
		wrong = append(wrong, &Observation{
			Step: step, Verdict: "counts", Severity: high, Object: name, Title: aKind(key.Kind) + " is deleted and created again",
			Want: "it stays", Got: "another one with the same name",
		})
	}
	return wrong
}

// tookAway finds objects that the operator deleted or evicted although the custom resources to which they belong did not change.
func (r *run) tookAway(step int, before world.State) (wrong []*Observation) {
	for _, one := range r.campaign.takenFrom(before, r.events(0)) {
		o := &Observation{
			Step: step, Verdict: "foreign", Severity: high, Object: one.key.String(), Title: "The operator deletes " + lowerKind(one.key.Kind) + " of another custom resource",
			Want: "it stays", Got: one.how,
		}
		for _, seen := range r.board.writes() {
			if seen.id == one.request {
				o.Got, o.Where = seen.String(), linesOf(r.board.sourceOf(seen.Moment), seen.String())
			}
		}
		wrong = append(wrong, o)
	}
	return wrong
}

// deletion is one object that the operator deleted, and the request that did it.
type deletion struct {
	key     world.Key
	request uint64
	how     string
}

// takenFrom returns what the operator deleted of a state, without what it makes for itself. Unlike replaced, it also finds pods and the
// like, if they belong to a custom resource and not to the operator as a whole.
func (c *campaign) takenFrom(before world.State, events []*lens.Event) (taken []deletion) {
	theirs := map[types.UID]bool{}
	for _, subject := range c.o.Subjects {
		if _, live := find(before, subject); live != nil {
			theirs[live.GetUID()] = true
		}
	}
	withOwned(theirs, before)
	byUID := map[string]world.Key{}
	for key, object := range before {
		name, _ := compare.Name(key, object)
		isTheirs := !slices.Contains(expendable, key.Resource) || theirs[object.GetUID()]
		if object.GetDeletionTimestamp() == nil && isTheirs && !c.mask.Objects[name] && !c.own[name] {
			byUID[string(object.GetUID())] = key
		}
	}
	for _, e := range events {
		for _, uid := range deletedBy(e.Request) {
			if key, known := byUID[uid]; known {
				delete(byUID, uid)
				taken = append(taken, deletion{key, e.Request.ID, e.Request.Verb + " " + e.Request.Resource.Resource})
			}
		}
	}
	return taken
}

// deletedBy returns the UIDs of what a request deletes or evicts; nil if it does neither.
func deletedBy(w *lens.Request) []string {
	switch {
	case w == nil || !w.IsWrite() || w.Refused():
	case w.Verb == "deletecollection":
		return w.Deleted
	case w.Object != nil && (w.Verb == "delete" && w.Resource.Subresource == "" || w.Verb == "create" && w.Resource.Subresource == "eviction"):
		return []string{w.Object.UID}
	}
	return nil
}
