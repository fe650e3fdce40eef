// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/why/diff"
)

func TestCompareSecretsHidesValues(t *testing.T) {
	const password = "hunter2"
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"copy": value}},
			Data:       map[string][]byte{"password": []byte(value)}, StringData: map[string]string{"password": value},
		}
	}
	metadata := func(value string) client.Object {
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"copy": value}}}
		m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		return m
	}
	untyped := func(value string) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "data": map[string]any{"password": value},
		}}
	}
	r := New(Options{})
	for name, pair := range map[string][2]client.Object{
		"typed":         {secret("other"), secret(password)},
		"new keys":      {&corev1.Secret{}, secret(password)},
		"metadata only": {metadata("other"), metadata(password)},
		"unstructured":  {untyped("other"), untyped(password)},
	} {
		t.Run(name, func(t *testing.T) {
			pair[1].SetResourceVersion("2")
			e := r.describe(Updated, pair[0], pair[1], time.Now())
			if len(e.cause.Changes) == 0 {
				t.Fatal("no changes are said")
			}
			if text := fmt.Sprintf("%+v", e.cause.Changes); strings.Contains(text, password) || strings.Contains(text, "other") {
				t.Errorf("a secret is told: %s", text)
			}
			for _, change := range e.cause.Changes {
				if change.New != diff.Hidden && change.Path != "metadata.name" {
					t.Errorf("%s is not said to have a value: %+v", change.Path, change)
				}
			}
		})
	}
}

// TestCompareSecretWithOtherKind compares a Secret with an answer that has only its metadata, and not its kind.
func TestCompareSecretWithOtherKind(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "data": map[string]any{"password": "hunter2"},
	}}
	metadata := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": map[string]any{"name": "s"},
	}}
	for name, pair := range map[string][2]client.Object{"before": {secret, metadata}, "after": {metadata, secret}} {
		changes, _, _ := Compare(pair[0], pair[1])
		if text := fmt.Sprintf("%+v", changes); len(changes) == 0 || strings.Contains(text, "hunter2") {
			t.Errorf("%s: the changes are %s", name, text)
		}
	}
}

var testDiffer = diff.Differ{MaxChanges: 16, MaxValue: 120, MaxCompared: 20_000}
