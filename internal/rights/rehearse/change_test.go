// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestSamplesThatCannotBeChanged(t *testing.T) {
	const denial = `admission webhook "v.example.com" denied the request: it is immutable`
	denied := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: denial}}
	}
	broken := errors.New("connection refused")
	for _, test := range []struct {
		name    string
		missing bool
		refuses func(changesSpec bool) error
		want    error
		notes   int
		changed bool
	}{
		{"accepted", false, func(bool) error { return nil }, nil, 0, true},
		{"gone", true, func(bool) error { return nil }, nil, 0, false},
		{"the spec is immutable, by a conflict", false, func(changesSpec bool) error {
			if changesSpec {
				return denied(http.StatusConflict)
			}
			return nil
		}, nil, 0, true},
		{"all is immutable", false, func(bool) error { return denied(http.StatusForbidden) }, nil, 1, false},
		{"no answer", false, func(bool) error { return broken }, broken, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			sample := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ReplicationController", "spec": map[string]any{"replicas": int64(1)}}}
			sample.SetName("sample")
			sample.SetNamespace("default")
			builder := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					data, err := patch.Data(object)
					if err != nil {
						return err
					}
					if err := test.refuses(strings.Contains(string(data), "replicas")); err != nil {
						return err
					}
					return c.Patch(ctx, object, patch, options...)
				},
			})
			if !test.missing {
				builder = builder.WithObjects(sample.DeepCopy())
			}
			objects, notes := builder.Build(), 0
			if err := change(t.Context(), objects, sample, func(string) { notes++ }); !errors.Is(err, test.want) || notes != test.notes {
				t.Errorf("got %v and %d notes", err, notes)
			}
			var live corev1.ReplicationController
			err := objects.Get(t.Context(), client.ObjectKeyFromObject(sample), &live)
			if changed := live.Annotations[changedAnnotation] != ""; changed != test.changed || err != nil && !test.missing {
				t.Errorf("changed: %t, %v", changed, err)
			}
		})
	}
}
