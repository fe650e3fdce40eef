// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

func TestTemplate(t *testing.T) {
	var template sharedv1.PodTemplate
	if err := yaml.UnmarshalStrict([]byte(`
metadata:
  labels: {tier: web, app.kubernetes.io/instance: mine}
  annotations: {a: b}
spec:
  initContainers: [{name: prepare}]
  containers:
    - {name: one, image: own, resources: {requests: {cpu: 1000m}}}
    - {name: two}
  serviceAccountName: robot
`), &template); err != nil {
		t.Fatal(err)
	}
	before := template.DeepCopy()
	converted, err := Template(&template, "given", SelectorLabels("robot", "r"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(converted)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"app.kubernetes.io/instance":"r"`, `"app.kubernetes.io/managed-by":"opdock"`, `"tier":"web"`, `"annotations":{"a":"b"}`,
		`{"name":"one","image":"own"`, `{"name":"two","image":"given"`, `{"name":"prepare","image":"given"`, `"cpu":"1"`, `"serviceAccountName":"robot"`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
	if !reflect.DeepEqual(before, &template) {
		t.Error("the spec was changed")
	}
}

// TestFollowsSpec sets what the API server would derive, so it changes with what it is derived from.
func TestFollowsSpec(t *testing.T) {
	for image, want := range map[string]string{
		"busybox": "Always", "busybox:latest": "Always", "busybox:1.38": "IfNotPresent", "host:5000/busybox": "Always", "host:5000/busybox:1": "IfNotPresent",
		"busybox@sha256:abc": "IfNotPresent", "busybox:latest@sha256:abc": "Always",
	} {
		var given sharedv1.PodTemplate
		if err := yaml.UnmarshalStrict([]byte(`spec: {containers: [{name: one}, {name: two, imagePullPolicy: Never}], initContainers: [{name: three}], serviceAccountName: robot}`), &given); err != nil {
			t.Fatal(err)
		}
		template, err := Template(&given, image, nil)
		if err != nil {
			t.Fatal(err)
		}
		spec := FollowsSpec(template).Spec
		if got := string(*spec.Containers[0].ImagePullPolicy); got != want || *spec.Containers[1].ImagePullPolicy != "Never" || string(*spec.InitContainers[0].ImagePullPolicy) != want {
			t.Errorf("%s: %s instead of %s", image, got, want)
		}
		if *spec.DeprecatedServiceAccount != "robot" {
			t.Errorf("%s: another service account", image)
		}
	}
}
