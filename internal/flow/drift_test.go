// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// configuration is what a controller applies; owned is what the server answers that it owns.
const (
	configuration = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
  labels: {a: b}
  finalizers: [one]
spec:
  replicas: 3
  template:
    spec:
      tolerations: [{key: x}]
      volumes: [{name: data, emptyDir: {}}]
      containers:
        - name: sidecar
        - name: app
          image: nginx
          env: [{name: A, value: b}]
          ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]
`
	owned = `{
"f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:annotations": {"f:opdock.dev/applied": {}}, "f:finalizers": {".": {}, "v:\"one\"": {}}},
"f:spec": {
  "f:replicas": {},
  "f:template": {"f:spec": {
    "f:tolerations": {},
    "f:volumes": {".": {}, "k:{\"name\":\"data\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}},
    "f:containers": {"k:{\"name\":\"sidecar\"}": {".": {}, "f:name": {}}, "k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {},
      "f:env": {".": {}, "k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}},
      "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
        "k:{\"containerPort\":80,\"protocol\":\"UDP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}}}}
  }}}}`
)

func TestDrift(t *testing.T) {
	without := func(field string) string {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(owned), &fields); err != nil {
			t.Fatal(err)
		}
		if !remove(fields, field) {
			t.Fatalf("there is no field %s", field)
		}
		data, err := yaml.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := yaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		return string(asJSON)
	}
	const (
		sidecar = `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"spy\"}": {".": {}, "f:name": {}, "f:image": {}}}}}}}`
		scaled  = `{"f:spec": {"f:replicas": {}}}`
		restart = `{"f:spec": {"f:template": {"f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/restartedAt": {}}}}}}`
		note    = `{"f:metadata": {"f:annotations": {"f:note": {}}}, "f:status": {"f:replicas": {}}}`
	)
	for _, test := range []struct {
		name  string
		owned string
		other string
		want  string
	}{
		{"all is ours", owned, note, ""},
		{"scaled", without("f:replicas"), scaled, "spec.replicas was changed by other"},
		{"another image", without("f:image"), "", `spec.template.spec.containers[name="app"].image was removed`},
		{"another list that is one value", without("f:tolerations"), "", "spec.template.spec.tolerations was removed"},
		{"no label", without("f:a"), "", "metadata.labels.a was removed"},
		{"no container", without(`k:{"name":"app"}`), "", `spec.template.spec.containers[name="app"] was removed`},
		{
			"one of two ports that differ in their protocol", without(`k:{"containerPort":80,"protocol":"TCP"}`), "",
			`spec.template.spec.containers[name="app"].ports[containerPort=80,protocol="TCP"] was removed`,
		},
		{"the only variable of a list", without(`k:{"name":"A"}`), "", `spec.template.spec.containers[name="app"].env[name="A"] was removed`},
		{"another kind of volume", without("f:emptyDir"), "", `spec.template.spec.volumes[name="data"].emptyDir was removed`},
		{"the only volume", without(`k:{"name":"data"}`), "", `spec.template.spec.volumes[name="data"] was removed`},
		{"the only item of a set", without(`v:"one"`), "", `metadata.finalizers[="one"] was removed`},
		{"an added container", owned, sidecar, `spec.template.spec.containers[name="spy"] was added by other`},
		{"restarted, which is allowed", owned, restart, ""},
		{"the same value twice", owned, scaled, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := desiredOf(t, configuration)
			live := &metav1.ObjectMeta{
				Annotations: map[string]string{AppliedAnnotation: want.hash},
				ManagedFields: []metav1.ManagedFieldsEntry{
					{Manager: "us", Operation: metav1.ManagedFieldsOperationApply, Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{}`)},
					{Manager: "us", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(test.owned)},
				},
			}
			if test.other != "" {
				live.ManagedFields = append(live.ManagedFields, metav1.ManagedFieldsEntry{
					Manager: "other", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(test.other),
				})
			}
			pass := &Pass{fieldOwner: "us", shapes: (&shapes{}).of(clientgoscheme.Scheme)}
			found := pass.drift(live, want)
			if got := found.describe(live, "us"); got != test.want || found.none() != (test.want == "") {
				t.Errorf("got %q, none: %v", got, found.none())
			}
		})
	}
	for _, nothing := range []string{"{}", "["} {
		want := desiredOf(t, configuration)
		live := &metav1.ObjectMeta{
			Annotations:   map[string]string{AppliedAnnotation: want.hash},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "us", FieldsV1: metav1.NewFieldsV1(nothing)}},
		}
		if (&Pass{fieldOwner: "us", shapes: (&shapes{}).of(clientgoscheme.Scheme)}).drift(live, want).none() {
			t.Errorf("with the managed fields %q there is no drift", nothing)
		}
	}
}

// A correction makes added fields ours before it removes them, and gives up the hash until then.
func TestDriftAfterAnUnfinishedCorrection(t *testing.T) {
	want := desiredOf(t, configuration)
	taken := strings.NewReplacer(`"f:annotations": {"f:opdock.dev/applied": {}}`, `"f:annotations": {}`, `"f:replicas": {}`, `"f:replicas": {}, "f:paused": {}`).Replace(owned)
	live := &metav1.ObjectMeta{
		Annotations:   map[string]string{AppliedAnnotation: want.hash},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "us", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(taken)}},
	}
	found := (&Pass{fieldOwner: "us", shapes: (&shapes{}).of(clientgoscheme.Scheme)}).drift(live, want)
	if got := found.describe(live, "us"); got != "fields were added, and an earlier correction was interrupted" || found.none() {
		t.Errorf("got %q, none: %v", got, found.none())
	}
}

// The server refuses to remove an injected item that others refer to. What was added to it is ours then, until it is gone.
func TestDriftAfterARefusedCorrection(t *testing.T) {
	const volume = `"k:{\"name\":\"injected\"}": {".": {}%s}, "k:{\"name\":\"data\"}"`
	for _, test := range []struct{ name, ours, other, released, injected string }{
		{"the edit is there", `, "f:emptyDir": {"f:medium": {}}`, "", "", ""},
		{"the edit is taken back", "", "", `.spec.template.spec.volumes[name="injected"]`, ""},
		{
			"another edit", "", `{"f:spec": {"f:template": {"f:spec": {"f:volumes": {"k:{\"name\":\"injected\"}": {"f:emptyDir": {"f:sizeLimit": {}}}}}}}}`,
			`.spec.template.spec.volumes[name="injected"]`, `.spec.template.spec.volumes[name="injected"]`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := desiredOf(t, configuration)
			taken := strings.NewReplacer(`"f:annotations": {"f:opdock.dev/applied": {}}`, `"f:annotations": {}`, `"k:{\"name\":\"data\"}"`, fmt.Sprintf(volume, test.ours)).Replace(owned)
			live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Annotations:   map[string]string{AppliedAnnotation: want.hash},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "us", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(taken)}},
			}}
			if test.other != "" {
				live.ManagedFields = append(live.ManagedFields, metav1.ManagedFieldsEntry{Manager: "other", Operation: "Update", FieldsV1: metav1.NewFieldsV1(test.other)})
			}
			pass := &Pass{fieldOwner: "us", shapes: (&shapes{}).of(clientgoscheme.Scheme)}
			found := pass.drift(live, want)
			if got := pathsOf(found.released); got != test.released {
				t.Errorf("released is %q", got)
			}
			if got := pathsOf(found.injected); got != test.injected {
				t.Errorf("injected is %q", got)
			}
			if found.none() || pass.mustTakeOver(live, found) != (test.released != "") {
				t.Errorf("the managed fields are written: %v", pass.mustTakeOver(live, found))
			}
			entries, err := takenOver(live.ManagedFields, "us", "apps/v1", found)
			if err != nil {
				t.Fatal(err)
			}
			item := fieldpath.MakePathOrDie("spec", "template", "spec", "volumes", fieldpath.KeyByFields("name", "injected"))
			if fields := fieldsOf(&entries[len(entries)-1]); fields.Has(item) != (test.name != "the edit is taken back") {
				t.Errorf("the item is ours: %v", fields.Has(item))
			}
		})
	}
}

func pathsOf(fields *fieldpath.Set) string {
	var paths []string
	for path := range fields.All() {
		paths = append(paths, path.String())
	}
	return strings.Join(paths, ", ")
}

func TestDriftWithinInjectedItems(t *testing.T) {
	const containers = `{"f:spec": {"f:template": {"f:spec": {"f:containers": %s}}}}`
	for _, test := range []struct{ name, other, want string }{
		{"a field of an injected container", `{"k:{\"name\":\"injected\"}": {"f:image": {}}}`, `.spec.template.spec.containers[name="injected"]`},
		{"a container of another manager", `{"k:{\"name\":\"spy\"}": {".": {}, "f:image": {}}}`, ""},
		{"a field of our container", `{"k:{\"name\":\"app\"}": {"f:tty": {}}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := desiredOf(t, configuration)
			live := &metav1.ObjectMeta{
				Annotations: map[string]string{AppliedAnnotation: want.hash},
				ManagedFields: []metav1.ManagedFieldsEntry{
					{Manager: "us", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(owned)},
					{Manager: "other", Operation: "Update", FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(containers, test.other))},
				},
			}
			found := (&Pass{fieldOwner: "us", shapes: (&shapes{}).of(clientgoscheme.Scheme)}).drift(live, want)
			if got := pathsOf(found.injected); got != test.want || len(found.added) != 1 {
				t.Errorf("got %q, added %v", got, found.added)
			}
		})
	}
}

// Any writer can use the name of our field manager.
func TestDriftUnderOurName(t *testing.T) {
	const paused = `{"f:spec": {"f:paused": {}}}`
	created := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	later := metav1.NewTime(created.Add(time.Second))
	entry := func(operation metav1.ManagedFieldsOperationType, fields string, at metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: "us", Operation: operation, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"created":                   {[]metav1.ManagedFieldsEntry{entry("Update", owned, created)}, ""},
		"applied later":             {[]metav1.ManagedFieldsEntry{entry("Apply", owned, later)}, ""},
		"applied, and then updated": {[]metav1.ManagedFieldsEntry{entry("Apply", owned, later), entry("Update", paused, later)}, "spec.paused was added by us"},
		"applied, and updated at the same time as created": {
			[]metav1.ManagedFieldsEntry{entry("Apply", owned, created), entry("Update", paused, created)}, "spec.paused was added by us",
		},
		"created, and then updated": {
			[]metav1.ManagedFieldsEntry{entry("Update", owned, later)},
			`metadata.annotations.opdock.dev/applied was changed by us, metadata.finalizers[="one"] was changed by us, metadata.labels.a was changed by us, ` +
				`spec.replicas was changed by us, spec.template.spec.containers[name="app"] was changed by us, ` +
				`spec.template.spec.containers[name="sidecar"] was changed by us, and 5 more`,
		},
	} {
		want := desiredOf(t, configuration)
		live := &metav1.ObjectMeta{CreationTimestamp: created, Annotations: map[string]string{AppliedAnnotation: want.hash}, ManagedFields: test.entries}
		found := (&Pass{fieldOwner: "us", shapes: (&shapes{}).of(clientgoscheme.Scheme)}).drift(live, want)
		if got := found.describe(live, "us"); got != test.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// desiredOf reads a configuration as it is, without what all children have.
func desiredOf(t *testing.T, configuration string) *desired {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(configuration), &content); err != nil {
		t.Fatal(err)
	}
	field(field(content, "metadata"), "annotations")[AppliedAnnotation] = "h"
	return &desired{content: content, apiVersion: "apps/v1", kind: "Deployment", name: "web", hash: "h"}
}

// remove removes a field wherever it is, and what contains nothing else. A list or map keeps its shell, as on the server.
func remove(fields map[string]any, name string) bool {
	if _, ok := fields[name]; ok {
		delete(fields, name)
		return true
	}
	for parent, below := range fields {
		if below, ok := below.(map[string]any); ok && remove(below, name) {
			if len(below) == 0 {
				delete(fields, parent)
			}
			return true
		}
	}
	return false
}
