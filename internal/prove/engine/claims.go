// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// A StatefulSet that is scaled down keeps the claims of the pods that are gone, and their volumes: by design, for when it is scaled
// up again. The same is true if the StatefulSet itself is deleted. An operator is to blame for them only if it is one that deletes
// claims.

// claimSets are the StatefulSets that were seen, by how the names of their claims begin: NAMESPACE/TEMPLATE-SET-.
type claimSets struct {
	mutex sync.Mutex
	known map[string]bool
}

func (s *claimSets) see(key world.Key, object *unstructured.Unstructured) {
	if key.Group != "apps" || key.Resource != "statefulsets" {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known == nil {
		s.known = map[string]bool{}
	}
	for _, template := range claimTemplates(object) {
		s.known[key.Namespace+"/"+template+"-"+key.Name+"-"] = true
	}
}

func (s *claimSets) has(claim world.Key) bool {
	at := strings.LastIndex(claim.Name, "-") + 1
	if _, err := strconv.ParseUint(claim.Name[at:], 10, 64); err != nil {
		return false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.known[claim.Namespace+"/"+claim.Name[:at]]
}

// shapeOf normalizes a state of the cluster. Addresses and times of the scenario are kept, and further ones that are given.
func (c *campaign) shapeOf(state world.State, known ...string) compare.Shape {
	return compare.ShapeOf(c.withoutSpareClaims(state), c.before, slices.Concat(c.o.Texts, known)...)
}

// shape normalizes the state of the cluster of a run.
func (r *run) shape() compare.Shape {
	r.seeSets()
	return r.campaign.shapeOf(r.world.State())
}

// seeSets keeps which StatefulSets came and went in a run.
func (r *run) seeSets() {
	_, changes := r.world.Changes(0)
	for i := range changes {
		r.campaign.sets.see(changes[i].Key, changes[i].Object)
	}
}

// deletesClaims reports whether the operator deletes claims.
func deletesClaims(stages []*stage) bool {
	return slices.ContainsFunc(stages, (*stage).deletesClaims)
}

func (s *stage) deletesClaims() bool {
	return slices.ContainsFunc(s.writes, func(w write) bool {
		return w.Resource == "persistentvolumeclaims" && strings.HasPrefix(w.Verb, "delete")
	})
}

// deletesUnused reports whether the operator deletes claims although its custom resources stay. Many operators delete them only when
// the custom resource is deleted, and leave those of a StatefulSet that is scaled down to Kubernetes.
func (c *campaign) deletesUnused(stages []*stage) bool {
	for i, s := range stages {
		if !c.o.Steps[i].Deletes && !c.o.Steps[i].Ends && s.deletesClaims() {
			return true
		}
	}
	return false
}

// withoutKeptClaims leaves out of the end of the last of these stages the claims that Kubernetes keeps, and their volumes.
func (c *campaign) withoutKeptClaims(stages []*stage) world.State {
	end := stages[len(stages)-1].state
	if deletesClaims(stages) {
		return end
	}
	return withoutSpares(end, c.spares(end))
}

// learnClaims finds out whether the operator deletes claims, and normalizes what was learned before that was known.
func (c *campaign) learnClaims(runs ...[]*stage) {
	c.keepsClaims, c.keepsUnused = !slices.ContainsFunc(runs, deletesClaims), !slices.ContainsFunc(runs, c.deletesUnused)
	for _, stages := range runs {
		for i, s := range stages {
			s.shape = c.shapeOf(s.state)
			if c.keepsClaims && c.o.Steps[i].Ends {
				c.keptClaims = max(c.keptClaims, len(c.spares(s.state)))
			}
		}
	}
}

// withoutSpareClaims leaves out claims that the operator leaves to Kubernetes, and their volumes.
func (c *campaign) withoutSpareClaims(state world.State) world.State {
	switch {
	case c.keepsClaims:
		return withoutSpares(state, c.spares(state))
	case c.keepsUnused:
		return withoutSpares(state, c.unused(state))
	}
	return state
}

// spares are the claims of pods that a StatefulSet does not have now, or that went with their StatefulSet.
func (c *campaign) spares(state world.State) map[string]bool {
	for key, object := range state {
		c.sets.see(key, object)
	}
	spare := c.unused(state)
	for key, object := range state {
		if _, was := c.before[key]; was || key.Resource != "persistentvolumeclaims" {
			continue
		}
		of, _ := isSpare(key, state)
		if !of && c.sets.has(key) && len(object.GetOwnerReferences()) == 0 && object.GetDeletionTimestamp() == nil {
			spare[object.GetNamespace()+"/"+object.GetName()] = true
		}
	}
	return spare
}

// unused are the claims of pods that an existing StatefulSet does not have now, by namespace and name.
func (c *campaign) unused(state world.State) map[string]bool {
	unused := map[string]bool{}
	for key := range state {
		if _, was := c.before[key]; was || key.Resource != "persistentvolumeclaims" {
			continue
		}
		if _, isUnused := isSpare(key, state); isUnused {
			unused[key.Namespace+"/"+key.Name] = true
		}
	}
	return unused
}

func withoutSpares(state world.State, spare map[string]bool) world.State {
	if len(spare) == 0 {
		return state
	}
	rest := maps.Clone(state)
	maps.DeleteFunc(rest, func(key world.Key, object *unstructured.Unstructured) bool {
		switch key.Resource {
		case "persistentvolumeclaims":
			return spare[object.GetNamespace()+"/"+object.GetName()]
		case "persistentvolumes":
			claim, _, _ := unstructured.NestedMap(object.Object, "spec", "claimRef")
			namespace, _ := claim["namespace"].(string)
			name, _ := claim["name"].(string)
			return spare[namespace+"/"+name]
		}
		return false
	})
	return rest
}

// claimTemplates are the names of the claims that each pod of a StatefulSet gets.
func claimTemplates(set *unstructured.Unstructured) (names []string) {
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	for _, one := range templates {
		template, _ := one.(map[string]any)
		name, _, _ := unstructured.NestedString(template, "metadata", "name")
		names = append(names, name)
	}
	return names
}

// isSpare says whether a claim is of a StatefulSet, TEMPLATE-SET-ORDINAL, and whether that does not have its pod now.
func isSpare(claim world.Key, state world.State) (of, unused bool) {
	for key, set := range state {
		if key.Group != "apps" || key.Resource != "statefulsets" || key.Namespace != claim.Namespace {
			continue
		}
		replicas, found, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
		first, _, _ := unstructured.NestedInt64(set.Object, "spec", "ordinals", "start")
		for _, name := range claimTemplates(set) {
			text, begins := strings.CutPrefix(claim.Name, name+"-"+key.Name+"-")
			if ordinal, err := strconv.ParseInt(text, 10, 64); begins && err == nil {
				of, unused = true, unused || found && (ordinal < first || ordinal >= first+replicas)
			}
		}
	}
	return of, unused
}
