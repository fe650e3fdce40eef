// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

// Objects of the fleet are in the caches whatever their labels are, so the label of a component hides nothing.
func TestWhichChildrenAreHidden(t *testing.T) {
	for _, test := range []struct {
		name, label string
		cachesAll   bool
		want        string
	}{
		{"with the label", ManagedBy, false, ""},
		{"with another one", "platform", false, ReasonLabelChanged},
		{"a component with another one", "platform", true, ""},
	} {
		w := newWorld(t, robot())
		w.CachesAll = test.cachesAll
		child := &robotv1.Robot{ObjectMeta: metav1.ObjectMeta{Name: "child", Labels: map[string]string{LabelManagedBy: test.label}}}
		var got error
		w.step = func(pass *Pass, _ *robotv1.Robot) error {
			got = pass.UnlessHidden(child)
			return nil
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if Reason(got) != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
