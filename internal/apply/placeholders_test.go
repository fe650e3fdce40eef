// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/hint"
)

func TestWithPlaceholders(t *testing.T) {
	const next = "; Opdock applies what kustomize builds and replaces no variables: set the value in a kustomization, for example with a patch"
	for name, test := range map[string]struct {
		data map[string]any
		err  error // a bad request if nil
		want []string
	}{
		"none":           {map[string]any{"a": "b", "price": "$5", "json": "{}", "empty": "${}", "script": "$HOME"}, nil, nil},
		"one":            {map[string]any{"credentials": "${AWS_B64ENCODED_CREDENTIALS}"}, nil, []string{"Secret keys contains ${AWS_B64ENCODED_CREDENTIALS}" + next}},
		"with a default": {map[string]any{"gates": "pools=${POOLS:=false},trace=${TRACE:-}"}, nil, []string{"Secret keys contains ${POOLS}, ${TRACE}" + next}},
		"more than once": {map[string]any{"a": "${B}", "b": "${A}${B}"}, nil, []string{"Secret keys contains ${A}, ${B}" + next}},
		"by apply":       {map[string]any{"a": "${A}"}, apierrors.NewInternalError(errors.New("illegal base64 data")), []string{"Secret keys contains ${A}" + next}},
		"no right":       {map[string]any{"script": "echo ${A}"}, apierrors.NewForbidden(corev1.Resource("secrets"), "keys", nil), nil},
		"no answer":      {map[string]any{"script": "echo ${A}"}, context.DeadlineExceeded, nil},
	} {
		t.Run(name, func(t *testing.T) {
			refused := test.err
			if refused == nil {
				refused = apierrors.NewBadRequest("illegal base64 data")
			}
			err := WithPlaceholders(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "keys"}, "data": test.data,
			}}, refused)
			if !errors.Is(err, refused) || err.Error() != refused.Error() {
				t.Errorf("got error %v, want %v", err, refused)
			}
			var got []string
			if hinted := (*hint.Error)(nil); errors.As(err, &hinted) {
				got = hinted.Hints
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected hints (-want +got):\n%s", diff)
			}
		})
	}
}
