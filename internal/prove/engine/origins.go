// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// origins are the objects of the scenario as they are in a state, for a cluster that does not have them.
func (c *campaign) origins(state world.State) (objects []*unstructured.Unstructured) {
	for _, other := range c.o.Others {
		if _, live := find(state, other); live != nil {
			objects = append(objects, original(other, live))
		}
	}
	for _, subject := range c.o.Subjects {
		if _, live := find(state, subject); live != nil {
			objects = append(objects, afresh(live))
		}
	}
	return objects
}

// original returns an object as the scenario applied it or, if a step has changed it, as it is.
func original(applied, live *unstructured.Unstructured) *unstructured.Unstructured {
	applied = applied.DeepCopy()
	applied.SetNamespace(live.GetNamespace()) // its kind may have none
	if includes(live.Object, applied.Object) {
		return applied
	}
	return afresh(live)
}

// includes reports whether a value has all fields of another. The API server adds defaults, also to the items of a list.
func includes(all, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		in, ok := all.(map[string]any)
		for name, value := range part {
			if !ok || !includes(in[name], value) {
				return false
			}
		}
		return true
	case []any:
		in, _ := all.([]any)
		return slices.EqualFunc(in, part, includes)
	}
	return fmt.Sprint(all) == fmt.Sprint(part)
}

// allocated are fields that the cluster fills in, and that belong to objects which a fresh cluster does not have.
var allocated = [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "volumeName"}, {"spec", "nodeName"}}

// afresh returns an object as a user would create it, with the spec that it has. The operator's notes in its metadata are
// left out: with them, the operator would take the object for one that it knows.
func afresh(live *unstructured.Unstructured) *unstructured.Unstructured {
	object := live.DeepCopy()
	delete(object.Object, "status")
	if object.GroupVersionKind().Group == "" {
		for _, path := range allocated {
			unstructured.RemoveNestedField(object.Object, path...)
		}
	}
	metadata := map[string]any{"name": live.GetName()}
	if namespace := live.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	object.Object["metadata"] = metadata
	object.SetLabels(usersOf(live, "f:labels", live.GetLabels()))
	object.SetAnnotations(usersOf(live, "f:annotations", live.GetAnnotations()))
	object.SetFinalizers(usersFinalizers(live))
	return object
}

// usersFinalizers returns the finalizers that the scenario wrote. Some ask the operator to clean up more when the object is deleted.
func usersFinalizers(live *unstructured.Unstructured) (users []string) {
	for name := range usersFields(live, "f:finalizers") {
		if value, isOne := strings.CutPrefix(name, "v:"); isOne {
			if text, err := strconv.Unquote(value); err == nil && slices.Contains(live.GetFinalizers(), text) {
				users = append(users, text)
			}
		}
	}
	slices.Sort(users)
	return users
}

// usersOf returns the labels or annotations that the scenario wrote.
func usersOf(live *unstructured.Unstructured, field string, all map[string]string) map[string]string {
	users := map[string]string{}
	for name := range usersFields(live, field) {
		if value, there := all[strings.TrimPrefix(name, "f:")]; there && name != "f:"+compare.Nudge {
			users[strings.TrimPrefix(name, "f:")] = value
		}
	}
	if len(users) == 0 {
		return nil
	}
	return users
}

// usersFields returns what the scenario wrote of a part of the metadata, as managed fields name it.
func usersFields(live *unstructured.Unstructured, field string) map[string]bool {
	users := map[string]bool{}
	entries, _, _ := unstructured.NestedSlice(live.Object, "metadata", "managedFields")
	for _, one := range entries {
		entry, _ := one.(map[string]any)
		if entry["manager"] != manager {
			continue
		}
		own, _, _ := unstructured.NestedMap(entry, "fieldsV1", "f:metadata", field)
		for name := range own {
			users[name] = true
		}
	}
	return users
}
