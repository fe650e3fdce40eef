// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/controller"
)

func TestReadinessOfEveryKind(t *testing.T) {
	for _, kind := range controller.Kinds {
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			object := kind.New()
			conditions := []metav1.Condition{{Type: sharedv1.ConditionReady, Status: status}}
			reflect.ValueOf(object).Elem().FieldByName("Status").FieldByName("Conditions").Set(reflect.ValueOf(conditions))
			if got := readiness(object); got != status {
				t.Errorf("%s that is %s counts as %s", kind.Kind, status, got)
			}
		}
		if got := readiness(kind.New()); got != metav1.ConditionUnknown {
			t.Errorf("%s without conditions counts as %s", kind.Kind, got)
		}
	}
}
