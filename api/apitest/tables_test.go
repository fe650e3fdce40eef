// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/cluster/clustertest"
)

// bad is a change that makes a good object bad.
type bad struct {
	name  string
	patch string // YAML of a JSON merge patch
	want  string // what the API server's answer must contain
}

// refuses checks that the API server refuses each change of a sample, for the right reason.
func refuses(t *testing.T, file string, table []bad) {
	t.Helper()
	s := realServer(t)
	base := sample(t, file)
	if _, err := s.try(t, base, metav1.NamespaceDefault); err != nil {
		t.Fatalf("without a change: %v", err)
	}
	for _, test := range table {
		t.Run(test.name, func(t *testing.T) {
			_, err := s.try(t, patched(t, base, test.patch), metav1.NamespaceDefault)
			requireRefusal(t, err, test.want)
		})
	}
}

// refusesChange checks that the API server refuses changes of an object that exists.
func refusesChange(t *testing.T, before *unstructured.Unstructured, table []bad) {
	t.Helper()
	s := realServer(t)
	namespace := clustertest.Namespace(t)
	created, err := s.apply(t, before, namespace)
	if err != nil {
		t.Fatal(err)
	}
	dryRun := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	if _, err := s.kind(t, created, namespace).Update(t.Context(), created, dryRun); err != nil {
		t.Fatalf("without a change: %v", err)
	}
	for _, test := range table {
		t.Run(test.name, func(t *testing.T) {
			_, err := s.kind(t, created, namespace).Update(t.Context(), patched(t, created, test.patch), dryRun)
			requireRefusal(t, err, test.want)
		})
	}
}

// accepts checks that the API server accepts each change of a sample.
func accepts(t *testing.T, file string, table map[string]string) {
	t.Helper()
	s := realServer(t)
	for name, patch := range table {
		t.Run(name, func(t *testing.T) {
			if _, err := s.try(t, patched(t, sample(t, file), patch), metav1.NamespaceDefault); err != nil {
				t.Error(err)
			}
		})
	}
}

// defaults checks what the API server makes of the spec of a changed sample: that and nothing else.
func defaults(t *testing.T, file, patch, want string) {
	t.Helper()
	s := realServer(t)
	got, err := s.try(t, patched(t, sample(t, file), patch), metav1.NamespaceDefault)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := parse(want)
	if err != nil {
		t.Fatal(err)
	}
	if !sameJSON(got.Object["spec"], wanted.Object["spec"]) {
		t.Errorf("%s with %s: the spec is\n\t%v\nwant\n\t%v", file, patch, got.Object["spec"], wanted.Object["spec"])
	}
}

func requireRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("it is accepted; want %s", want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("the answer is\n\t%v\nwhich lacks\n\t%s", err, want)
	}
}

// patched returns an object with a JSON merge patch applied.
func patched(t *testing.T, object *unstructured.Unstructured, patch string) *unstructured.Unstructured {
	t.Helper()
	change, err := parse(patch)
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	result := object.DeepCopy()
	merge(result.Object, change.Object)
	return result
}

func merge(into, change map[string]any) {
	for key, value := range change {
		inner, isMap := value.(map[string]any)
		old, wasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(old, inner)
		default:
			into[key] = value
		}
	}
}
