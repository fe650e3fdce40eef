// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/prove/world"
)

// TestUnfollowed has what is said about an object that a change did not reach.
func TestConditionsThatAreTrouble(t *testing.T) {
	for _, test := range []struct {
		kind, want, got string
		trouble         bool
	}{
		{"Stalled", "absent", "True", true},
		{"Ready", "True", "absent", false},
		{"ClusterAvailable", "True", "absent", false},
		{"SpecAccepted", "True", "absent", true},
		{"SpecAccepted", "True", "Unknown", true},
		{"Paused", "absent", "Unknown", false},
		{"Paused", "absent", "True", true},
		{"Paused", "True", "absent", true},
	} {
		d := compare.Difference{Path: "status.conditions[" + test.kind + "].status", Want: test.want, Got: test.got}
		if got := saysTrouble(d); got != test.trouble {
			t.Errorf("%s from %s to %s: %t", test.kind, test.want, test.got, got)
		}
	}
}

func TestPhasesAreUnhealthy(t *testing.T) {
	subjects := []*unstructured.Unstructured{frigate()}
	for status, want := range map[string]bool{`{phase: Ready}`: false, `{phase: Pending}`: true, `{conditions: [{type: Available, status: "False"}]}`: true} {
		live := read(t, "{apiVersion: sea.example.com/v1, kind: Frigate, metadata: {name: victory, namespace: default}, status: "+status+"}")
		key := world.Key{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "victory"}
		if got := isUnhealthy(subjects, &made{state: world.State{key: live}}); got != want {
			t.Errorf("%s: %t", status, got)
		}
	}
}

func TestUnfollowed(t *testing.T) {
	const object = "Service default/web"
	before := compare.Fields{"spec.port": "80", "data.old": "1", "spec.type": "ClusterIP"}
	for name, test := range map[string]struct {
		found            []compare.Difference
		title, want, got string
	}{
		"a field that stays": {
			[]compare.Difference{{Object: object, Path: "spec.port", Want: "81", Got: "80"}},
			"A change of spec.port does not reach a Service",
			"spec.port is 81, as after a fresh start with the same spec", "spec.port stays 80",
		},
		"a field that is not added": {
			[]compare.Difference{{Object: object, Path: "spec.ip", Want: "x", Got: "absent"}},
			"A change of spec.port does not reach a Service",
			"spec.ip is x, as after a fresh start with the same spec", "spec.ip is absent",
		},
		"an old entry": {
			[]compare.Difference{{Object: object, Path: "data.old", Want: "absent", Got: "1"}},
			"A change of spec.port leaves something behind in a Service",
			"data.old is absent, as after a fresh start with the same spec", "data.old stays 1",
		},
		"a field with a third value": {
			[]compare.Difference{{Object: object, Path: "spec.type", Want: "NodePort", Got: "LoadBalancer"}, {Object: object, Path: "spec.port", Want: "81", Got: "80"}},
			"A change of spec.port reaches a Service only in part",
			"spec.type is NodePort; spec.port is 81, as after a fresh start with the same spec", "spec.type is LoadBalancer; spec.port stays 80",
		},
		"a parent and its field": {
			[]compare.Difference{{Object: object, Path: "data", Want: "{}", Got: "absent"}, {Object: object, Path: "data.old", Want: "absent", Got: "1"}},
			"A change of spec.port leaves something behind in a Service",
			"data.old is absent, as after a fresh start with the same spec", "data.old stays 1",
		},
		"an object that is left": {
			[]compare.Difference{{Object: object, Want: "absent", Got: "present"}},
			"After a change of spec.port, a Service that a fresh start does not create is left",
			"absent, as after a fresh start with the same spec", "present",
		},
		"an object that is missing": {
			[]compare.Difference{{Object: object, Want: "present", Got: "absent"}},
			"After a change of spec.port, a Service that a fresh start creates is missing",
			"present, as after a fresh start with the same spec", "absent",
		},
		"too few": {
			[]compare.Difference{{Object: object, Want: "3 of them", Got: "2 of them"}},
			"After a change of spec.port, there are not as many objects of kind Service as after a fresh start",
			"3 of them, as after a fresh start with the same spec", "2 of them",
		},
	} {
		about := &changing{what: "a change of spec.port", done: "done"}
		wrong := about.unfollowed(1, test.found, compare.Shape{Objects: map[string]compare.Fields{object: before}}, nil)
		if len(wrong) != 1 {
			t.Fatalf("%s: %d observations", name, len(wrong))
		}
		o := wrong[0]
		if o.Title != test.title || o.Want != test.want || o.Got != test.got || o.Verdict != "update" || o.Object != object || o.Step != 1 || o.Done != "done" {
			t.Errorf("%s: %+v", name, o)
		}
	}
	many := &changing{what: "the changes in the scenario"}
	wrong := many.unfollowed(1, []compare.Difference{{Object: object, Path: "spec.port", Want: "81", Got: "80"}}, compare.Shape{Objects: map[string]compare.Fields{object: before}}, []string{"field is immutable"})
	if wrong[0].Title != "The changes in the scenario do not reach a Service" || !strings.HasSuffix(wrong[0].Got, "stays 80. The operator keeps failing, and does not report it: field is immutable") {
		t.Errorf("%+v", wrong[0])
	}
}

// TestOneChangeIsOneCause has a property that is ignored when it is changed and when it is removed.
func TestOneChangeIsOneCause(t *testing.T) {
	cause := func(what, want string) string {
		found := []compare.Difference{{Object: "Service default/web", Path: "spec.port", Want: want, Got: "80"}}
		return (&changing{what: what}).unfollowed(1, found, compare.Shape{Objects: map[string]compare.Fields{"Service default/web": {"spec.port": "80"}}}, nil)[0].cause()
	}
	if cause("a change of spec.port", "81") != cause("a change of spec.port", "absent") {
		t.Error("one property has two causes")
	}
	if cause("a change of spec.port", "81") == cause("a change of spec.ports", "81") {
		t.Error("two properties have one cause")
	}
}

// TestIsPast has differences that only show that there was something before.
func TestIsPast(t *testing.T) {
	fresh := compare.Shape{Objects: map[string]compare.Fields{"ConfigMap default/web-5d4f8c": {}, "Deployment default/web-30080": {}, "Service default/web-http": {}}}
	for _, test := range []struct {
		d    compare.Difference
		past bool
	}{
		{compare.Difference{Object: "ConfigMap default/web-77bd1a", Want: "absent", Got: "present"}, true},
		{compare.Difference{Object: "ConfigMap default/web-77bd1a", Want: "present", Got: "absent"}, false},
		{compare.Difference{Object: "ConfigMap default/other-77bd1a", Want: "absent", Got: "present"}, false},
		{compare.Difference{Object: "Service default/web-admin", Want: "absent", Got: "present"}, false},
		{compare.Difference{Object: "Pod default/web-3", Want: "absent", Got: "present"}, false},
		{compare.Difference{Path: "spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt", Want: "absent", Got: "(time)"}, true},
		{compare.Difference{Path: "metadata.annotations.example.com/generation", Want: "1", Got: "3"}, true},
		{compare.Difference{Path: "spec.template.spec.containers[web].env[REVISION].value", Want: "1", Got: "3"}, true},
		{compare.Difference{Path: "metadata.annotations.example.com/pluginsUpdatedAt", Want: "absent", Got: "x"}, true},
		{compare.Difference{Path: "metadata.annotations.example.com/last-applied-spec", Want: "a", Got: "b"}, true},
		{compare.Difference{Path: "metadata.annotations.unchanged", Want: "a", Got: "b"}, false},
		{compare.Difference{Path: "spec.template.spec.containers[web].env[DEGENERATION].value", Want: "a", Got: "b"}, false},
		{compare.Difference{Path: "metadata.annotations.example.com/observedGeneration", Want: "1", Got: "3"}, true},
		{compare.Difference{Object: "Deployment default/web-30081", Want: "absent", Got: "present"}, false},
		{compare.Difference{Path: "spec.template.spec.containers[web].env[RESTART_POLICY].value", Want: "a", Got: "b"}, false},
		{compare.Difference{Path: "spec.template.spec.containers[web].env[ROLLOUT_STRATEGY].value", Want: "a", Got: "b"}, false},
		{compare.Difference{Path: "metadata.labels.previous-owner", Want: "a", Got: "b"}, false},
		{compare.Difference{Path: "spec.template.metadata.annotations.config-hash", Want: "a", Got: "b"}, false},
		{compare.Difference{Object: "StatefulSet default/web", Path: "status.currentRevision", Want: "web-a", Got: "web-b"}, true},
		{compare.Difference{Object: "StatefulSet default/web", Path: "status.currentReplicas", Want: "1", Got: "0"}, false},
		{compare.Difference{Path: "spec.revisionHistoryLimit", Want: "1", Got: "3"}, false},
		{compare.Difference{Object: "Certificate default/web", Path: "status.revision", Want: "2", Got: "4"}, true},
		{compare.Difference{Object: "Release default/web", Path: "status.history[1].digest", Want: "absent", Got: "b"}, true},
		{compare.Difference{Object: "Certificate default/web", Path: "status.observedGeneration", Want: "current", Got: "2 behind"}, false},
		{compare.Difference{Object: "Certificate default/web", Path: "status.lastReconciledGeneration", Want: "current", Got: "1 behind"}, false},
		{compare.Difference{Object: "Certificate default/web", Path: "status.updated", Want: "true", Got: "false"}, false},
		{compare.Difference{Object: "Certificate default/web", Path: "status.phase", Want: "Ready", Got: "Failed"}, false},
		{compare.Difference{Object: "Certificate default/web", Path: "status.updatedReplicas", Want: "3", Got: "2"}, false},
		{compare.Difference{Path: "spec.replicas", Want: "1", Got: "3"}, false},
	} {
		if past := isPast(test.d, fresh); past != test.past {
			t.Errorf("%+v: %v", test.d, past)
		}
	}
}

// TestIsNote has annotations that only say when something happened.
func TestIsNote(t *testing.T) {
	for _, test := range []struct {
		d    compare.Difference
		note bool
	}{
		{compare.Difference{Path: "metadata.annotations.example.com/pluginsUpdatedAt", Want: "absent", Got: "(time)"}, true},
		{compare.Difference{Path: "metadata.annotations.example.com/createdAt", Want: "(time)", Got: "absent"}, false},
		{compare.Difference{Path: "metadata.annotations.example.com/revision-history", Want: "absent", Got: "1"}, true},
		{compare.Difference{Path: "metadata.annotations.example.com/revision", Want: "1", Got: "2"}, false},
		{compare.Difference{Path: "metadata.annotations.example.com/owner", Want: "absent", Got: "nelson"}, false},
		{compare.Difference{Path: "spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt", Want: "absent", Got: "(time)"}, false},
		{compare.Difference{Path: "status.lastSeen", Want: "absent", Got: "(time)"}, false},
	} {
		if note := isNote(test.d); note != test.note {
			t.Errorf("%+v: %v", test.d, note)
		}
	}
}

func frigateSaying(t *testing.T, conditions ...string) *made {
	t.Helper()
	frigate := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sea/v1", "kind": "Frigate", "metadata": map[string]any{"name": "a", "namespace": "default"}}}
	var all []any
	for _, one := range conditions {
		parts := strings.SplitN(one, " ", 3)
		all = append(all, map[string]any{"type": parts[0], "status": parts[1], "message": strings.Join(parts[2:], "")})
	}
	if err := unstructured.SetNestedSlice(frigate.Object, all, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	return &made{state: world.State{{Group: "sea", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "a"}: frigate}}
}

// TestReportedChanges has what a status says about a change that was not carried out.
func TestReportedChanges(t *testing.T) {
	subject := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sea/v1", "kind": "Frigate", "metadata": map[string]any{"name": "a", "namespace": "default"}}}
	subjects := []*unstructured.Unstructured{subject}
	for _, test := range []struct {
		name      string
		now, then []string
		differs   int
		says      bool
	}{
		{"the same", []string{"Ready True all is well"}, []string{"Ready True all is well"}, 0, false},
		{"another text", []string{"Ready True 2 pods updated"}, []string{"Ready True 2 pods created"}, 0, false},
		{"not ready", []string{"Ready False"}, []string{"Ready True"}, 1, false},
		{"stalled", []string{"Ready True", "Stalled True"}, []string{"Ready True"}, 1, false},
		{"false or absent", []string{"Ready True", "Progressing False"}, []string{"Ready True"}, 0, false},
		{"a refusal in a message", []string{"Ready True storage cannot be changed"}, []string{"Ready True"}, 0, true},
		{"a message of both", []string{"Ready True no errors; cannot complain"}, []string{"Ready True no errors; cannot complain"}, 0, false},
		{"other work, and no failure", []string{"Ready True 3 pods updated, 0 failed"}, []string{"Ready True 3 pods created, 0 failed"}, 0, false},
		{"only the change has a count", []string{"Ready True 3 pods updated; 0 failed, no errors"}, []string{"Ready True 3 pods created"}, 0, false},
		{"no pods are pending", []string{"Ready True no pods are pending"}, []string{"Ready True"}, 0, false},
		{"a failure", []string{"Ready True 3 pods updated, 2 failed"}, []string{"Ready True 3 pods created, 0 failed"}, 0, true},
		{"another time", []string{"Ready True last error 1m12s ago, at 2026-01-02T03:04:05Z"}, []string{"Ready True last error 9s ago, at 2026-01-02T03:00:00Z"}, 0, false},
		{"other pods that wait", []string{"Ready False waiting for web-5d4f8c-2: pending"}, []string{"Ready False waiting for web-77bd1a-1: pending"}, 0, false},
		{"a change that is ignored", []string{"Ready True 3 pods, ignored: field is immutable"}, []string{"Ready True 3 pods"}, 0, true},
		{"a refusal beside a failure of both", []string{"Ready True 1 failed. The storage cannot be changed"}, []string{"Ready True 1 failed"}, 0, true},
	} {
		now, then := frigateSaying(t, test.now...), frigateSaying(t, test.then...)
		if found := statusDifferences(subjects, now, then); len(found) != test.differs {
			t.Errorf("%s: %v", test.name, found)
		}
		if says := saysSo(subjects, now, then); says != test.says {
			t.Errorf("%s: says so: %v", test.name, says)
		}
	}
	now, then := frigateSaying(t, "Ready True"), frigateSaying(t, "Ready True")
	for m, reason := range map[*made]string{now: "Updated", then: "Created"} {
		_, object := find(m.state, subject)
		if err := unstructured.SetNestedSlice(object.Object, []any{map[string]any{"type": "Ready", "status": "True", "reason": reason, "message": "1 failed"}}, "status", "conditions"); err != nil {
			t.Fatal(err)
		}
	}
	if saysSo(subjects, now, then) {
		t.Error("another reason makes the same message a report")
	}
	for reason, want := range map[string]bool{"UpdateFailed": true, "ImmutableField": true, "RestartRequired": true, "Updating": false, "PodsPending": false, "NoErrors": false} {
		_, object := find(now.state, subject)
		if err := unstructured.SetNestedSlice(object.Object, []any{map[string]any{"type": "Ready", "status": "False", "reason": reason}}, "status", "conditions"); err != nil {
			t.Fatal(err)
		}
		if got := saysSo(subjects, now, then); got != want {
			t.Errorf("the reason %s is a report: %v", reason, got)
		}
	}
	if isUnhealthy(subjects, frigateSaying(t, "Ready True")) || !isUnhealthy(subjects, frigateSaying(t, "Ready False")) {
		t.Error("health is wrong")
	}
}

// TestAfresh keeps what the user wrote.
func TestAfresh(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea/v1", "kind": "Frigate", "spec": map[string]any{"guns": int64(3)}, "status": map[string]any{"phase": "Ready"},
		"metadata": map[string]any{
			"name": "a", "namespace": "default", "uid": "1", "generation": int64(4), "finalizers": []any{"x/y", "user/clean-up"},
			"labels": map[string]any{"team": "red"}, "annotations": map[string]any{"user": "1", "operator": "2", compare.Nudge: "true"},
			"managedFields": []any{
				map[string]any{"manager": manager, "fieldsV1": map[string]any{"f:metadata": map[string]any{
					"f:labels": map[string]any{".": map[string]any{}, "f:team": map[string]any{}}, "f:annotations": map[string]any{"f:user": map[string]any{}, "f:" + compare.Nudge: map[string]any{}},
					"f:finalizers": map[string]any{".": map[string]any{}, `v:"user/clean-up"`: map[string]any{}, `v:"user/removed"`: map[string]any{}},
				}}},
				map[string]any{"manager": "manager", "fieldsV1": map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{"f:operator": map[string]any{}}}}},
			},
		},
	}}
	got := afresh(live).Object
	want := map[string]any{
		"apiVersion": "sea/v1", "kind": "Frigate", "spec": map[string]any{"guns": int64(3)},
		"metadata": map[string]any{"name": "a", "namespace": "default", "labels": map[string]any{"team": "red"}, "annotations": map[string]any{"user": "1"}, "finalizers": []any{"user/clean-up"}},
	}
	if !includes(got, want) || !includes(want, got) {
		t.Errorf("%v instead of %v", got, want)
	}
}

// TestOriginal prefers an object as it was applied, because the cluster has filled in the rest.
func TestOriginal(t *testing.T) {
	service := func(port int64, more map[string]any) *unstructured.Unstructured {
		spec := map[string]any{"ports": []any{map[string]any{"port": port}}}
		for name, value := range more {
			spec[name] = value
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "a"}, "spec": spec}}
	}
	filled := map[string]any{"clusterIP": "10.0.0.1", "type": "ClusterIP"}
	if got := original(service(80, nil), service(80, filled)); len(got.Object["spec"].(map[string]any)) != 1 { //nolint:forcetypeassert // made above
		t.Errorf("%v", got)
	}
	// The operator has added a selector. The API server completes ports in place.
	selected := map[string]any{"selector": map[string]any{"hash": "1"}, "ports": []any{map[string]any{"port": int64(80), "protocol": "TCP"}}}
	if got := original(service(80, nil), service(80, selected)); len(got.Object["spec"].(map[string]any)) != 1 { //nolint:forcetypeassert // made above
		t.Errorf("%v", got)
	}
	got := original(service(80, nil), service(81, filled))
	if spec, _, _ := unstructured.NestedMap(got.Object, "spec"); !includes(spec["ports"], []any{map[string]any{"port": int64(81)}}) || spec["clusterIP"] != nil || spec["type"] != "ClusterIP" {
		t.Errorf("%v", got)
	}
}

// TestWorthStart compares all valid changes with a fresh start, and others once for properties that have no valid one.
func TestWorthStart(t *testing.T) {
	change := func(path string, class values.Class) values.Change {
		return values.Change{Path: strings.Split(path, "."), Property: strings.Split(path, "."), Class: class, Value: "x"}
	}
	block := func(property string, class values.Class) values.Change {
		one := change("spec.block", class)
		one.Property = append(one.Property, property)
		return one
	}
	got := worthStart([]values.Change{
		block("a", values.Valid), block("a", values.Limit), block("b", values.Limit), block("b", values.Limit), change("spec.paused", values.Valid), block("suspend", values.Valid),
	})
	if want := []bool{true, false, true, false, false, false}; !slices.Equal(got, want) {
		t.Errorf("%v instead of %v for an absent block and switches that pause", got, want)
	}
	got = worthStart([]values.Change{
		change("spec.a", values.Limit), change("spec.a", values.Valid), change("spec.a", values.Valid), change("spec.b", values.Limit), change("spec.b", values.Limit), change("spec.c", values.Misuse),
	})
	if want := []bool{false, true, true, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("%v instead of %v", got, want)
	}
}

// TestMadeShape compares what the operator wrote, and nothing else.
func TestMadeShape(t *testing.T) {
	object := func(apiVersion, kind, resource, name string, more map[string]any) (world.Key, *unstructured.Unstructured) {
		fields := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "default"}}
		for field, value := range more {
			fields[field] = value
		}
		one := &unstructured.Unstructured{Object: fields}
		return world.Key{Group: one.GroupVersionKind().Group, Resource: resource, Kind: kind, Namespace: "default", Name: name}, one
	}
	state := world.State{}
	add := func(apiVersion, kind, resource, name string, more map[string]any) {
		key, one := object(apiVersion, kind, resource, name, more)
		state[key] = one
	}
	add("v1", "ConfigMap", "configmaps", "own", map[string]any{"data": map[string]any{"a": "1"}, "status": map[string]any{"x": "y"}})
	add("v1", "ConfigMap", "configmaps", "other", nil)
	add("batch/v1", "Job", "jobs", "done", map[string]any{"status": map[string]any{"completionTime": "2026-01-01T00:00:00Z"}})
	add("batch/v1", "Job", "jobs", "running", nil)
	add("apps/v1", "Deployment", "deployments", "web", map[string]any{"spec": map[string]any{"replicas": int64(3), "paused": false}})
	add("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "web", map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"kind": "Deployment", "name": "web"}}})
	c := &campaign{mask: compare.NewMask()}
	all := &made{state: state, written: map[string]bool{"ConfigMap default/own": true, "Job default/done": true, "Job default/running": true, "Deployment default/web": true}}
	got, _ := c.madeShapes(all, &made{state: world.State{}})
	if len(got.Objects) != 3 || got.Objects["Deployment default/web"]["spec.replicas"] != "3" || got.Objects["Job default/running"] == nil || got.Objects["ConfigMap default/own"]["data.a"] != "1" || got.Objects["ConfigMap default/own"]["status.x"] != "" {
		t.Errorf("%v", got.Objects)
	}

	// The number of replicas with an autoscaler depends on how many there were.
	fewer := maps.Clone(state)
	key, one := object("apps/v1", "Deployment", "deployments", "web", map[string]any{"spec": map[string]any{"replicas": int64(1), "paused": true}})
	fewer[key] = one
	found := c.deviates(&Plan{Step: 1}, all, &made{state: fewer, written: all.written}, nil)
	if len(found) != 1 || found[0].Path != "spec.paused" {
		t.Errorf("%v", found)
	}
}

// TestHidesNew carries what differs between undisturbed runs over to objects with other names.
func TestHidesNew(t *testing.T) {
	c := &campaign{mask: compare.NewMask(), reference: []*stage{{shape: compare.Shape{Objects: map[string]compare.Fields{"Deployment default/web": {}, "Deployment default/db": {}}}}}}
	c.mask.Fields["Deployment default/web"] = map[string]bool{"metadata.annotations.hash": true}
	for object, want := range map[string]bool{"Deployment default/renamed": true, "Service default/renamed": false, "Deployment default/db": false} {
		if got := c.hidesNew(compare.Difference{Object: object, Path: "metadata.annotations.hash"}); got != want {
			t.Errorf("%s: %v", object, got)
		}
	}
	if c.hidesNew(compare.Difference{Object: "Deployment default/renamed", Path: "spec.replicas"}) {
		t.Error("a field that is always the same is hidden")
	}
}

// TestDeviatesWithoutIgnored leaves out a field that the scenario ignores, and nothing else of the object. What a fresh start changes
// anyway is left out as well.
func TestDeviatesWithoutIgnored(t *testing.T) {
	key := world.Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: "default", Name: "orders"}
	with := func(data map[string]any) *made {
		return &made{state: world.State{key: {Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "orders", "namespace": "default"}, "data": data,
		}}}, written: map[string]bool{key.String(): true}}
	}
	changed := with(map[string]any{"first": "1", "port": "80", "other": "a"})
	fresh := with(map[string]any{"first": "2", "port": "81", "other": "b"})
	c := &campaign{mask: compare.NewMask()}
	c.o.Ignores = func(o *Observation) string {
		if o.Verdict == "update" && o.Family == "input" && slices.Equal(o.Fields, []string{"data.first"}) {
			return "only at creation"
		}
		return ""
	}
	hide := compare.NewMask()
	hide.Fields[key.String()] = map[string]bool{"data.other": true}
	found := c.deviates(&Plan{Step: 1}, changed, fresh, hide)
	if len(found) != 1 || found[0].Path != "data.port" || found[0].Got != "80" || found[0].Want != "81" {
		t.Errorf("%v", found)
	}
}

// TestIsReport has events that explain why a change was not carried out.
func TestIsReport(t *testing.T) {
	since := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	later, earlier := metav1.NewTime(since.Add(time.Second)), metav1.NewTime(since.Add(-time.Second))
	for name, test := range map[string]struct {
		event corev1.Event
		want  bool
	}{
		"a warning":      {corev1.Event{Type: "Warning", LastTimestamp: later, Message: "spec.storage cannot change"}, true},
		"of before":      {corev1.Event{Type: "Warning", LastTimestamp: earlier, Message: "spec.storage cannot change"}, false},
		"said again":     {corev1.Event{Type: "Warning", LastTimestamp: earlier, Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(later.Time)}}, true},
		"without a time": {corev1.Event{Type: "Warning", EventTime: metav1.NewMicroTime(later.Time)}, true},
		"no warning":     {corev1.Event{Type: "Normal", LastTimestamp: later}, false},
		"a conflict":     {corev1.Event{Type: "Warning", LastTimestamp: later, Message: "Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified; please apply your changes to the latest version and try again"}, false},
	} {
		if got := isReport(&test.event, since); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
