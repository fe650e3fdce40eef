// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import "testing"

func TestEqualButForVersion(t *testing.T) {
	const crd = "metadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.23.0\n  name: ships.example.com\n"
	for name, test := range map[string]struct {
		before, now string
		want        bool
	}{
		"the same":          {crd, crd, true},
		"another version":   {"metadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.9\n  name: ships.example.com\n", crd, true},
		"another name":      {"metadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.9\n  name: rafts.example.com\n", crd, false},
		"something before":  {"a: b\nmetadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.9\n  name: ships.example.com\n", crd, false},
		"no version":        {"metadata:\n  annotations:\n  name: ships.example.com\n", crd, false},
		"no version at all": {"a: b\n", "a: c\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := equalButForVersion([]byte(test.before), []byte(test.now)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
