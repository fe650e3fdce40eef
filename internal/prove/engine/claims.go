// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// A StatefulSet that is scaled down keeps the claims of the pods that are gone, and their volumes: by design, for when it is scaled
// up again. An operator is to blame for them only if it is one that deletes claims.

// shapeOf normalizes a state of the cluster. Addresses and times of the scenario are kept, and further ones that are given.
func (c *campaign) shapeOf(state world.State, known ...string) compare.Shape {
	return compare.ShapeOf(c.withoutSpareClaims(state), c.before, slices.Concat(c.o.Texts, known)...)
}

// learnClaims finds out whether the operator deletes claims, and normalizes what was learned before that was known.
func (c *campaign) learnClaims(runs ...[]*stage) {
	c.keepsClaims = true
	for _, stages := range runs {
		for _, s := range stages {
			for i := range s.writes {
				if w := &s.writes[i]; w.Resource == "persistentvolumeclaims" && strings.HasPrefix(w.Verb, "delete") {
					c.keepsClaims = false
				}
			}
		}
	}
	for _, stages := range runs {
		for _, s := range stages {
			s.shape = c.shapeOf(s.state)
		}
	}
}

// withoutSpareClaims leaves out claims of pods that a StatefulSet does not have now, and their volumes.
func (c *campaign) withoutSpareClaims(state world.State) world.State {
	if !c.keepsClaims {
		return state
	}
	spare := map[string]bool{} // by namespace and name
	for key, object := range state {
		if key.Resource == "persistentvolumeclaims" && isSpare(key, state) {
			spare[object.GetNamespace()+"/"+object.GetName()] = true
		}
	}
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

// isSpare says whether a claim is of a pod that a StatefulSet does not have now: TEMPLATE-SET-ORDINAL.
func isSpare(claim world.Key, state world.State) bool {
	for key, set := range state {
		if key.Group != "apps" || key.Resource != "statefulsets" || key.Namespace != claim.Namespace {
			continue
		}
		replicas, found, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
		if !found {
			continue
		}
		first, _, _ := unstructured.NestedInt64(set.Object, "spec", "ordinals", "start")
		templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
		for _, one := range templates {
			template, _ := one.(map[string]any)
			name, _, _ := unstructured.NestedString(template, "metadata", "name")
			text, of := strings.CutPrefix(claim.Name, name+"-"+key.Name+"-")
			if ordinal, err := strconv.ParseInt(text, 10, 64); of && err == nil && (ordinal < first || ordinal >= first+replicas) {
				return true
			}
		}
	}
	return false
}
