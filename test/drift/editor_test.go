// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// editor makes random changes to an object, of the kinds that people and programs make: it changes, removes and adds
// fields, in what the object asks for and in the part of its metadata that belongs to the fleet.
type editor struct {
	*rand.Rand
	// waits means that each edit is corrected before the next one. Otherwise the managed fields may have been cleared just
	// before, and an object that loses its owner and its labels as well is rightly taken for another one.
	waits bool
}

// additions are fields that the fleet does not set, by the kind of the child. Each is a JSON merge patch.
var additions = map[string][]string{
	"Deployment": {
		`{"spec": {"paused": true}}`,
		`{"spec": {"minReadySeconds": 7}}`,
		`{"spec": {"template": {"spec": {"hostNetwork": true}}}}`,
		`{"spec": {"template": {"spec": {"hostPID": true}}}}`,
		`{"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}}`,
		`{"spec": {"template": {"spec": {"securityContext": {"fsGroup": 7}}}}}`,
		`{"spec": {"template": {"metadata": {"annotations": {"added": "yes"}}}}}`,
		`{"spec": {"template": {"metadata": {"labels": {"added": "yes"}}}}}`,
	},
	"Service": {
		`{"spec": {"externalIPs": ["192.0.2.1"]}}`,
		`{"spec": {"selector": {"added": "yes"}}}`,
		`{"spec": {"sessionAffinity": "ClientIP"}}`,
		`{"spec": {"type": "NodePort"}}`,
		`{"spec": {"publishNotReadyAddresses": true}}`,
		`{"spec": {"type": "ExternalName", "externalName": "elsewhere.example.com", "clusterIP": "", "clusterIPs": null}}`,
	},
	"HorizontalPodAutoscaler": {`{"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 7}}}}`, `{"spec": {"metrics": []}}`},
	"Ingress": {
		`{"spec": {"defaultBackend": {"service": {"name": "elsewhere", "port": {"number": 80}}}}}`,
		`{"spec": {"tls": [{"secretName": "added"}]}}`,
	},
	"NetworkPolicy":       {`{"spec": {"ingress": [{}]}}`, `{"spec": {"egress": [{}], "policyTypes": ["Ingress", "Egress"]}}`},
	"PodDisruptionBudget": {`{"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}`},
	"ConfigMap": {
		`{"data": {"added": "yes"}}`, `{"binaryData": {"added": "eWVz"}}`, `{"immutable": true}`, `{"data": null}`,
	},
	"AppService": {`{"spec": {"securityProfile": "AsWritten"}}`, `{"spec": {"suspend": true}}`, `{"spec": {"networkPolicy": {}}}`},
	"Robot":      {`{"spec": {"suspend": true}}`, `{"spec": {"deploymentName": "elsewhere"}}`},
	"PodCluster": {`{"spec": {"suspend": true}}`, `{"spec": {"revisionHistoryLimit": 3}}`},
	"Collector":  {`{"spec": {"suspend": true}}`, `{"spec": {"output": {"configMapName": "elsewhere"}}}`},
	"Pod": {
		`{"spec": {"activeDeadlineSeconds": 5000}}`,
		`{"metadata": {"labels": {"tier": "evil"}}}`, `{"metadata": {"annotations": {"note": null}}}`,
		`{"metadata": {"ownerReferences": null}}`, `{"metadata": {"labels": null}}`, `{"metadata": {"labels": null, "ownerReferences": null}}`,
		`{"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}`, `{"metadata": {"labels": {"app.kubernetes.io/instance": "elsewhere"}}}`,
		`{"metadata": {"labels": {"controller-revision-hash": "0000", "apps.kubernetes.io/pod-index": "7"}}}`,
		`{"metadata": {"managedFields": [{}]}, "spec": {"activeDeadlineSeconds": 5000}}`, unblock,
	},
	"ControllerRevision": {
		`{"metadata": {"labels": null}}`, `{"metadata": {"labels": {"controller-revision-hash": "0000"}}}`,
		`{"metadata": {"ownerReferences": null}}`, `{"metadata": {"labels": null, "ownerReferences": null}}`,
		`{"metadata": {"labels": {"app.kubernetes.io/managed-by": null}, "ownerReferences": null}}`, unblock,
	},
}

// unblock lets the garbage collector delete the owner before the child.
const unblock = `"blockOwnerDeletion": false`

// metadataEdits are changes of the metadata that belongs to the fleet.
var metadataEdits = []string{
	`{"metadata": {"ownerReferences": null}}`,
	`{"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}`,
	`{"metadata": {"labels": {"app.kubernetes.io/instance": "elsewhere"}}}`,
	`{"metadata": {"annotations": {"opdock.dev/applied": "0000"}}}`,
	`{"metadata": {"annotations": {"opdock.dev/applied": null}}}`,
	`{"metadata": {"managedFields": [{}]}, "spec": {"paused": true}, "data": {"added": "yes"}}`,
	unblock,
}

// releases are changes of the owner reference together with labels.
var releases = []string{
	`{"metadata": {"ownerReferences": null, "labels": {"app.kubernetes.io/managed-by": null}}}`,
	`{"metadata": {"ownerReferences": null, "labels": {"app.kubernetes.io/managed-by": null, "app.kubernetes.io/name": "web"}}}`,
	`{"metadata": {"ownerReferences": null, "labels": {"app.kubernetes.io/instance": null}}}`,
}

// edit returns the object as it is after a random change, and says which.
func (e *editor) edit(live *unstructured.Unstructured) (edited *unstructured.Unstructured, what string) {
	edited = live.DeepCopy()
	patches := additions[live.GetKind()]
	if isApplied := live.GetKind() != "Pod" && live.GetKind() != "ControllerRevision"; isApplied {
		patches = slices.Concat(patches, metadataEdits)
		if e.waits {
			patches = append(patches, releases...)
		}
	}
	var fields []field
	for _, top := range []string{"spec", "data"} {
		if live.GetKind() == "ControllerRevision" {
			break // its data is immutable
		}
		if below, ok := edited.Object[top].(map[string]any); ok {
			fields = collect(fields, top, below)
		}
	}
	// An earlier edit may have emptied the object: all that is left then is to add something.
	if len(patches) > 0 && (len(fields) == 0 || e.IntN(3) == 0) {
		patch := patches[e.IntN(len(patches))]
		if patch == unblock {
			references := edited.GetOwnerReferences()
			for i := range references {
				references[i].BlockOwnerDeletion = new(false)
			}
			edited.SetOwnerReferences(references)
			return edited, "sets " + patch
		}
		var change map[string]any
		if err := json.Unmarshal([]byte(patch), &change); err != nil {
			panic(err)
		}
		merge(edited.Object, change)
		return edited, "merges " + patch
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.path, b.path) })
	one := fields[e.IntN(len(fields))]
	return edited, one.change(e)
}

// ownerReference describes the reference to an owner, without its UID.
func ownerReference(child, owner *unstructured.Unstructured) string {
	for _, one := range child.GetOwnerReferences() {
		if one.UID == owner.GetUID() {
			return fmt.Sprintln(one.APIVersion, one.Kind, one.Name, ptr.Deref(one.Controller, false), ptr.Deref(one.BlockOwnerDeletion, false))
		}
	}
	return "none"
}

// merge is a JSON merge patch.
func merge(into, change map[string]any) {
	for name, value := range change {
		switch value := value.(type) {
		case nil:
			delete(into, name)
		case map[string]any:
			below, ok := into[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				into[name] = below
			}
			merge(below, value)
		default:
			into[name] = runtime.DeepCopyJSONValue(value)
		}
	}
}

// field is a place in an object that can be changed.
type field struct {
	path   string
	parent map[string]any
	name   string
}

func collect(fields []field, path string, object map[string]any) []field {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := path + "." + name
		fields = append(fields, field{at, object, name})
		switch value := object[name].(type) {
		case map[string]any:
			fields = collect(fields, at, value)
		case []any:
			for i, item := range value {
				if item, ok := item.(map[string]any); ok {
					fields = collect(fields, fmt.Sprintf("%s[%d]", at, i), item)
				}
			}
		}
	}
	return fields
}

// change changes a field in a way that fits its value, or removes it.
func (f field) change(e *editor) string {
	if e.IntN(4) == 0 {
		delete(f.parent, f.name)
		return "removes " + f.path
	}
	switch value := f.parent[f.name].(type) {
	case string:
		f.parent[f.name] = value + "x"
	case bool:
		f.parent[f.name] = !value
	case int64:
		f.parent[f.name] = value + 1
	case []any:
		if len(value) > 1 && e.IntN(3) == 0 {
			shuffled := slices.Clone(value)
			slices.Reverse(shuffled)
			f.parent[f.name] = shuffled
			return "reverses " + f.path
		}
		if len(value) > 0 && e.IntN(2) == 0 {
			f.parent[f.name] = value[1:]
			return "removes the first item of " + f.path
		}
		if len(value) == 0 {
			return "changes nothing"
		}
		f.parent[f.name] = append(slices.Clone(value), another(value[0]))
		return "adds an item to " + f.path
	case map[string]any:
		value["added"] = "yes"
		return "adds a key to " + f.path
	}
	return "changes " + f.path
}

// another is an item like the given one under another name.
func another(item any) any {
	switch item := runtime.DeepCopyJSONValue(item).(type) {
	case map[string]any:
		for _, key := range []string{"name", "mountPath", "secretName", "key"} {
			if value, ok := item[key].(string); ok {
				item[key] = value + "x"
			}
		}
		for _, key := range []string{"port", "containerPort"} {
			if value, ok := item[key].(int64); ok {
				item[key] = value + 1
			}
		}
		delete(item, "nodePort")
		return item
	case string:
		return item + "x"
	default:
		return item
	}
}

// The editor never runs out of edits, whatever its earlier ones left of an object.
func TestEditorGoesOn(t *testing.T) {
	e := &editor{Rand: rand.New(rand.NewPCG(1, 1))}
	for _, kind := range slices.Sorted(maps.Keys(additions)) {
		object := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": map[string]any{"replicas": int64(1)}}}
		if kind == "ConfigMap" {
			object.Object = map[string]any{"kind": kind, "data": map[string]any{"ips.txt": "10.0.0.1"}}
		}
		edits := map[string]bool{}
		for range 500 {
			var what string
			object, what = e.edit(object)
			edits[what] = true
		}
		for _, patch := range additions[kind] {
			if !edits["merges "+patch] && !edits["sets "+patch] {
				t.Errorf("%s: it never makes the edit %s", kind, patch)
			}
		}
	}
}
