// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func victory() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Frigate", "metadata": map[string]any{"name": "victory"}, "spec": map[string]any{"guns": 104},
	}}
}

// TestStepsInCode are those of a file.
func TestStepsInCode(t *testing.T) {
	crew := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "crew", Namespace: "sea"}, StringData: map[string]string{"captain": "nelson"}}
	o := &Options{
		Steps: []Step{
			Apply("create", crew, victory()), Wait("ready", victory(), "Ready=True"), Patch("more guns", victory(), `{"spec": {"guns": 105}}`),
			Scale("scale", victory(), 3), Delete("no crew", crew), DeleteAll("delete"),
		},
		Ignore: []Ignore{{Verdict: "status", Object: "Frigate", Reason: "it is a heartbeat"}},
		Settle: Settle{Patience: 3 * time.Second},
	}
	s, err := scenarioOf(t.Context(), nil, o, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	const want = `apiVersion: opdock.dev/v1alpha1
kind: Scenario
steps:
  - name: create
    apply:
      - apiVersion: v1
        kind: Secret
        metadata:
          name: crew
          namespace: sea
        stringData:
          captain: nelson
      - apiVersion: sea.example.com/v1
        kind: Frigate
        metadata:
          name: victory
        spec:
          guns: 104
  - name: ready
    wait:
      apiVersion: sea.example.com/v1
      kind: Frigate
      name: victory
      for: Ready=True
  - name: more guns
    patch:
      apiVersion: sea.example.com/v1
      kind: Frigate
      name: victory
      merge:
        spec:
          guns: 105
  - name: scale
    scale:
      apiVersion: sea.example.com/v1
      kind: Frigate
      name: victory
      replicas: 3
  - name: no crew
    delete:
      apiVersion: v1
      kind: Secret
      name: crew
      namespace: sea
  - name: delete
    delete:
      all: true
ignore:
  - verdict: status
    object: Frigate
    reason: it is a heartbeat
settle:
  patience: 3s
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	bare, err := plain(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "victory"}})
	if _, found := bare.Object["status"]; err != nil || found {
		t.Errorf("got %v, %v, want no status", bare, err)
	}
	if crew.GetObjectKind().GroupVersionKind().Kind != "" || crew.StringData == nil {
		t.Error("the object of the caller was changed")
	}
}

// TestMistakesInIgnore are those that a file may not have either.
func TestMistakesInIgnore(t *testing.T) {
	for want, entry := range map[string]Ignore{
		"needs a reason":                        {Verdict: "status"},
		"this entry ignores everything":         {Reason: "it is a heartbeat"},
		`there is no verdict "statsu"`:          {Verdict: "statsu", Reason: "it is a heartbeat"},
		`there is no family "crashes"`:          {Family: "crashes", Reason: "it is a heartbeat"},
		"entry 2 of Ignore: an entry of ignore": {Object: "Frigate", Reason: " "},
	} {
		o := &Options{Steps: []Step{Apply("create", victory())}, Ignore: []Ignore{{Family: "crash", Reason: "it never crashes"}, entry}}
		if _, err := scenarioOf(t.Context(), nil, o, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// frigate is a Go type that no scheme here knows.
type frigate struct{ corev1.ConfigMap }

func TestMistakesInSteps(t *testing.T) {
	for want, steps := range map[string][]Step{
		`step "create": there is no object to apply`:                                         {Apply("create")},
		`step "create": *prove.frigate victory has no apiVersion and kind: set its TypeMeta`: {Apply("create", &frigate{corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "victory"}}})},
		`step "create": a ConfigMap has no name`:                                             {Apply("create", &corev1.ConfigMap{})},
		"step 1 has no name":                                                                 {Apply("", victory())},
		`two steps have the name "create"`:                                                   {Apply("create", victory()), DeleteAll("create")},
		`step "delete" deletes what steps before it applied, but there is none`:              {DeleteAll("delete"), Apply("create", victory())},
		`step "change": "[1]" is no merge patch`:                                             {Patch("change", victory(), "[1]")},
		`step "ready": "Ready" is no condition with a status, such as Ready=True`:            {Wait("ready", victory(), "Ready")},
	} {
		if _, err := (&Options{Steps: steps}).inCode(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	both := &Options{Scenario: "prove.yaml", Steps: []Step{Apply("create", victory())}}
	if _, err := scenarioOf(t.Context(), nil, both, nil, nil); err == nil || !strings.Contains(err.Error(), "give one of them") {
		t.Errorf("got %v", err)
	}
}

func TestReplayOfStepsInCode(t *testing.T) {
	o := &Options{Steps: []Step{Apply("create", victory())}}
	s, err := o.inCode()
	if err != nil {
		t.Fatal(err)
	}
	setup, err := setupOf(o, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := setup.complete(Options{}); !errors.Is(err, ErrStepsInCode) {
		t.Errorf("got %v, want that the steps are missing: samples have other steps", err)
	}
	if _, err := setup.complete(*o); err != nil {
		t.Error(err)
	}
}

// A caller may run steps again, and in several campaigns at the same time.
func TestStepsStayAsTheyAre(t *testing.T) {
	o := Options{Steps: []Step{Apply("create", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Frigate", "metadata": map[string]any{"name": "victory"},
	}})}}
	first, err := o.inCode()
	if err != nil {
		t.Fatal(err)
	}
	digest := digestOf(first)
	first.Steps[0].Apply.Objects[0].SetNamespace("default")
	if again, err := o.inCode(); err != nil || digestOf(again) != digest {
		t.Errorf("the second time, the steps are %v, %v", again, err)
	}
}
