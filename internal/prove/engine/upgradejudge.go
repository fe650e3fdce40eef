// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/crddiff"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// schemaObservations are the differences between the CRDs of two releases that matter to objects and clients.
func schemaObservations(differences []crddiff.Difference) (wrong []*Observation) {
	severities := map[crddiff.Severity]string{crddiff.Breaking: high, crddiff.Risky: low}
	for _, d := range differences {
		severity, matters := severities[d.Severity]
		if !matters {
			continue
		}
		o := &Observation{
			Verdict: "admission", Severity: severity, Object: "CustomResourceDefinition " + d.CRD, Want: "objects and clients of the earlier release are not affected", Got: d.Message,
		}
		place := d.CRD
		if d.Version != "" {
			place += " " + d.Version
		}
		if d.Path != "" {
			place += " " + d.Path
			o.Fields = []string{d.Path}
		}
		o.Title = fmt.Sprintf("The CRDs differ in a %s way: %s (%s)", d.Severity, place, d.Reason)
		wrong = append(wrong, o)
	}
	return wrong
}

// storedObservations returns objects that new CRDs no longer accept, or whose fields they drop.
func storedObservations(definitions []*apiextensionsv1.CustomResourceDefinition, state world.State) (wrong []*Observation) {
	for _, definition := range definitions {
		var objects []*unstructured.Unstructured
		for _, key := range sortedKeys(state) {
			if key.Group == definition.Spec.Group && key.Kind == definition.Spec.Names.Kind && !isConvertedFirst(definition, state[key]) {
				objects = append(objects, state[key])
			}
		}
		for _, one := range crddiff.Validate(definition, objects) {
			wrong = append(wrong, &Observation{
				Verdict: "admission", Severity: high, Object: one.Name, Title: one.Name + " is no longer valid after the upgrade",
				Want: "objects of the earlier release stay valid", Got: strings.Join(one.Errors, "; "),
			})
		}
		for _, object := range objects {
			lost := crddiff.Pruned(definition, object)
			if len(lost) == 0 {
				continue
			}
			name := object.GetKind() + " " + fullName(object)
			wrong = append(wrong, &Observation{
				Verdict: "admission", Severity: high, Object: name, Fields: lost[:min(len(lost), mostFields)], Title: name + " loses data with the upgrade",
				Want: "all fields are kept", Got: "dropped: " + strings.Join(lost, ", "),
			})
		}
	}
	return wrong
}

// fullName is the name of an object with its namespace.
func fullName(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}

// isConvertedFirst reports whether a webhook has to convert an object first, because the CRD does not have its
// version.
func isConvertedFirst(definition *apiextensionsv1.CustomResourceDefinition, object *unstructured.Unstructured) bool {
	return convert([]*apiextensionsv1.CustomResourceDefinition{definition}) &&
		!slices.ContainsFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == object.GroupVersionKind().Version
		})
}

func sortedKeys(state world.State) []world.Key {
	keys := make([]world.Key, 0, len(state))
	for key := range state {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b world.Key) int { return cmp.Compare(a.String(), b.String()) })
	return keys
}

// ofController reports whether a controller of Kubernetes creates an object, such as a Pod of a ReplicaSet.
func ofController(object *unstructured.Unstructured) bool {
	for _, owner := range object.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller && (strings.HasPrefix(owner.APIVersion, "apps/") || strings.HasPrefix(owner.APIVersion, "batch/")) {
			return true
		}
	}
	return false
}

// unasked is a write that changed something, although no user changed the object.
type unasked struct {
	verb, object string
	fields       []string
	status       bool // and nothing else
}

// unasked are the writes of an operator that was only started.
func (r *run) unasked(ctx context.Context) ([]unasked, error) {
	if err := r.lens.Flush(ctx); err != nil {
		return nil, err
	}
	return unaskedIn(r.events(0)), nil
}

func unaskedIn(events []*lens.Event) (writes []unasked) {
	for _, e := range events {
		w := e.Request
		if w == nil || !w.IsWrite() || neverEnds(w.Resource) || w.Refused() || w.Change == nil || w.Change.None || w.Object == nil {
			continue
		}
		key := world.Key{Kind: w.Object.Kind, Namespace: w.Object.Namespace, Name: w.Object.Name}
		one := unasked{verb: w.Verb, object: key.String(), status: w.Resource.Subresource == "status"}
		inStatus := len(w.Change.Fields) > 0
		for _, field := range w.Change.Fields {
			one.fields = append(one.fields, field.Path)
			inStatus = inStatus && compare.Difference{Path: field.Path}.IsStatus()
		}
		one.status = one.status || inStatus
		writes = append(writes, one)
	}
	return writes
}

// without removes writes that happen in any case: to the same fields of the same object.
func without(writes, anyway []unasked) []unasked {
	return slices.DeleteFunc(slices.Clone(writes), func(w unasked) bool {
		return slices.ContainsFunc(anyway, func(other unasked) bool {
			return w.object == other.object && w.verb == other.verb && slices.Equal(w.fields, other.fields)
		})
	})
}

// taking holds what an operator does to objects of an earlier release.
type taking struct {
	before, after world.State
	shapeOf       func(world.State) compare.Shape
	mask          *compare.Mask
	writes        []unasked
	// replaced are pods that are gone, by how their names begin.
	replaced []string
}

// judge finds unrequested changes: the worst for each object, and of writes only those that left no trace.
func (t *taking) judge() (wrong []*Observation) {
	found := t.mask.Differences(t.shapeOf(t.before), t.shapeOf(t.after))
	grave := slices.ContainsFunc(found, func(d compare.Difference) bool { return !d.IsStatus() })
	about := map[string]bool{}
	for _, key := range sortedKeys(t.before) {
		now, still := t.after[key]
		if still && now.GetUID() != t.before[key].GetUID() {
			about[key.String()], grave = true, true
			wrong = append(wrong, &Observation{
				Verdict: "counts", Severity: high, Object: key.String(), Title: "The upgrade deletes " + key.String() + " and creates it again", Want: "the same object", Got: "another object of the same name",
			})
		}
	}
	for len(found) > 0 {
		name := found[0].Object
		var mine, others []compare.Difference
		for _, d := range found {
			if d.Object != name {
				others = append(others, d)
			} else if !grave || !d.IsStatus() {
				mine = append(mine, d)
			}
		}
		found = others
		if len(mine) > 0 && !about[name] {
			about[name] = true
			wrong = append(wrong, t.changed(name, mine))
		}
	}
	if !slices.ContainsFunc(wrong, func(o *Observation) bool { return strings.Contains(o.Title, "restarts") || o.Verdict == "counts" }) {
		for _, pods := range t.replaced {
			wrong = append(wrong, &Observation{
				Verdict: "counts", Severity: high, Object: pods, Title: "The upgrade replaces " + pods, Want: "pods keep running", Got: "they are deleted, and others created",
			})
		}
	}
	return append(wrong, t.untraced(about, grave)...)
}

// changed judges the differences of one object.
func (t *taking) changed(name string, mine []compare.Difference) *Observation {
	o := &Observation{Verdict: "end-state", Severity: medium, Object: name, Title: "The upgrade changes " + name}
	template := slices.DeleteFunc(slices.Clone(mine), func(d compare.Difference) bool { return !strings.HasPrefix(d.Path, "spec.template.") })
	switch first := mine[0]; {
	case first.Path == "" && first.Got == "absent":
		o.Severity, o.Title = high, "The upgrade deletes "+name
	case first.Path == "" && first.Want == "absent":
		o.Title = "The upgrade creates " + name
	case first.Path == "":
		o.Title = "The upgrade changes how many there are of " + name
	case len(template) > 0 && t.rollsOut(name):
		o.Severity, o.Title = high, "The upgrade restarts the workload of "+name
		mine = template
	case first.IsStatus():
		o.Verdict, o.Severity, o.Title = "status", low, "The upgrade changes the status of "+name
	}
	o.describe(mine)
	return o
}

// rollsOut reports whether a new pod template makes the controller of an object replace its pods.
func (t *taking) rollsOut(name string) bool {
	for key, object := range t.after {
		if key.String() != name || key.Group != "apps" {
			continue
		}
		paused, _, _ := unstructured.NestedBool(object.Object, "spec", "paused")
		strategy, _, _ := unstructured.NestedString(object.Object, "spec", "updateStrategy", "type")
		return !paused && strategy != "OnDelete" && key.Kind != "ReplicaSet"
	}
	return false
}

// untraced are writes to objects that are as before in the end. A status follows from what else has changed.
func (t *taking) untraced(about map[string]bool, grave bool) (wrong []*Observation) {
	for _, w := range t.writes {
		if about[w.object] || w.status && grave {
			continue
		}
		about[w.object] = true
		o := &Observation{
			Verdict: "rest-writes", Severity: medium, Object: w.object, Fields: w.fields[:min(len(w.fields), mostFields)], Title: "After the upgrade the operator writes " + w.object + ", although nothing asked for it",
			Want: "no write", Got: w.verb,
		}
		if len(w.fields) > 0 {
			o.Got += " of " + strings.Join(w.fields[:min(len(w.fields), mostFields)], ", ")
		}
		if w.status {
			o.Severity, o.Title = low, "After the upgrade the operator writes the status of "+w.object+", although nothing asked for it"
		}
		wrong = append(wrong, o)
	}
	return wrong
}

// replacedPods are pods that are gone although they were there at the start, once for each workload.
func replacedPods(start, end world.State) (names []string) {
	for _, key := range sortedKeys(start) {
		if key.Group != "" || key.Resource != "pods" || !ofController(start[key]) {
			continue
		}
		if now, still := end[key]; still && now.GetUID() == start[key].GetUID() {
			continue
		}
		name, _ := compare.Name(key, start[key])
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// notReady are objects that were fine before, and are not now.
func notReady(part string, before, after world.State) (wrong []*Observation) {
	for _, key := range sortedKeys(before) {
		now, still := after[key]
		if !still {
			continue
		}
		was, _ := apply.Status(before[key])
		is, message := apply.Status(now)
		if was == "Current" && is != "Current" {
			wrong = append(wrong, &Observation{
				Verdict: "status", Severity: high, Object: key.String(), Title: key.String() + " is not ready after the " + part, Want: "ready, as before", Got: strings.TrimSuffix(is+": "+message, ": "),
			})
		}
	}
	return wrong
}

// leftBehind are objects that stay when the custom resources are deleted after an upgrade, and do not without it.
func leftBehind(before, remains, anyway world.State) (wrong []*Observation) {
	there := map[types.UID]bool{}
	for _, object := range remains {
		there[object.GetUID()] = true
	}
	for _, key := range sortedKeys(remains) {
		_, same := anyway[key]
		if same || slices.ContainsFunc(remains[key].GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return there[owner.UID] }) {
			continue // it follows from its owner
		}
		o := &Observation{
			Verdict: "leftovers", Severity: high, Object: key.String(), Title: key.String() + " is left behind when the custom resources are deleted after the upgrade",
			Want: "deleted, as by the earlier release", Got: "still there",
		}
		if object := remains[key]; object.GetDeletionTimestamp() != nil {
			o.Verdict, o.Title = "deletion", "The deletion of "+key.String()+" does not end after the upgrade"
			o.Got = "waits for the finalizers " + strings.Join(object.GetFinalizers(), ", ")
		} else if _, was := before[key]; !was {
			o.Got = "created during the upgrade or the deletion"
		}
		wrong = append(wrong, o)
	}
	return wrong
}

// notBack are differences between the state before an upgrade and that after the way back.
func notBack(found []compare.Difference) (wrong []*Observation) {
	grave := slices.ContainsFunc(found, func(d compare.Difference) bool { return !d.IsStatus() })
	byObject := map[string][]compare.Difference{}
	var order []string
	for _, d := range found {
		if grave && d.IsStatus() {
			continue
		}
		if byObject[d.Object] == nil {
			order = append(order, d.Object)
		}
		byObject[d.Object] = append(byObject[d.Object], d)
	}
	for _, name := range order {
		mine := byObject[name]
		o := &Observation{Verdict: "end-state", Severity: medium, Object: name, Title: "After the downgrade, " + name + " is not what it was before the upgrade"}
		switch first := mine[0]; {
		case first.Path == "" && first.Got == "absent":
			o.Severity, o.Title = high, "After the downgrade, "+name+" is missing"
		case first.Path == "" && first.Want == "absent":
			o.Verdict, o.Title = "leftovers", "After the downgrade, "+name+" of the newer release is left"
		case first.IsStatus():
			o.Verdict, o.Severity, o.Title = "status", low, "After the downgrade, the status of "+name+" is not what it was before the upgrade"
		}
		o.describe(mine)
		wrong = append(wrong, o)
	}
	return wrong
}
