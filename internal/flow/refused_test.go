// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRefused(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "a", errors.New("the namespace goes"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err    error
		reason string
	}{
		"invalid":        {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), ReasonInvalid},
		"bad request":    {apierrors.NewBadRequest("no"), ReasonInvalid},
		"unreadable":     {apierrors.NewInternalError(errors.New("failed to create typed patch object (a; v1, Kind=Pod)")), ReasonInvalid},
		"forbidden":      {apierrors.NewForbidden(pods, "a", errors.New("quota")), ReasonForbidden},
		"namespace goes": {terminating, ""},
		"a conflict":     {apierrors.NewConflict(pods, "a", errors.New("changed")), ""},
		"internal":       {apierrors.NewInternalError(errors.New("etcd")), ""},
		"no answer":      {errors.New("connection refused"), ""},
	} {
		got := Refused(fmt.Errorf("applying: %w", test.err))
		if Reason(got) != test.reason || IsStalled(got) != (test.reason != "") || !errors.Is(got, test.err) {
			t.Errorf("%s: the outcome is %v with reason %q", name, got, Reason(got))
		}
	}
}
