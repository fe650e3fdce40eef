// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/instrument"
)

// Go prints files relative to the folder that it runs in if that is shorter, so the name of the folder with copies may
// not be in its output.
func TestErrorsOfMarks(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		output string
		want   bool
	}{
		"absolute": {"/home/me/.cache/opdock/instrumented/controller-runtime@v0.19.0-5cd6b0a7f0c1/pkg/client/client.go:60:2: undefined: rest", true},
		"relative to the project, with its package": {
			"# sigs.k8s.io/controller-runtime/pkg/client\n../.cache/opdock/instrumented/controller-runtime@v0.19.0-5cd6b0a7f0c1/pkg/client/client.go:60:2: undefined: rest", true,
		},
		"relative to the project":    {"../.cache/opdock/instrumented/controller-runtime@v0.19.0-5cd6b0a7f0c1/pkg/client/client.go:60:2: undefined: rest", true},
		"relative to the cache":      {"# sigs.k8s.io/controller-runtime/pkg/internal/controller\ncontroller-runtime@v0.19.0-5cd6b0a7f0c1/controller.go:1:1: syntax error", true},
		"the package of its aliases": {"# sigs.k8s.io/controller-runtime\n../alias.go:1:1: syntax error", true},
		"the project's own": {
			"# example.com/shop/internal/controller\ninternal/controller/shop.go:36:57: undefined: nothing", false,
		},
		"the project's own, about a type of controller-runtime": {
			"# example.com/shop\n./main.go:9:2: cannot use x (variable of type int) as *\"sigs.k8s.io/controller-runtime/pkg/client\".Client value", false,
		},
		"another module": {"# sigs.k8s.io/controller-runtime-extras/pkg\n../x.go:1:1: syntax error", false},
	} {
		said := ""
		m := &marking{
			instrument: &instrument.Project{CopiesDir: "/home/me/.cache/opdock/instrumented"}, instrumented: &instrument.Build{}, say: func(text string) { said = text },
		}
		if got := m.isToBlame(one.output); got != one.want || m.isInstrumented() == one.want || strings.Contains(said, "does not compile with marks") != one.want {
			t.Errorf("%s: %t, and %q is said", name, got, said)
		}
	}
	if (&marking{}).isToBlame("# sigs.k8s.io/controller-runtime/pkg/client") {
		t.Error("a build without marks is tried again without them")
	}
}
