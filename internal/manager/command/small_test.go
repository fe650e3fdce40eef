// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Templates call methods by name, and make the linker keep those of all types there are: a third of the program.
func TestTheManagerHasNoTemplates(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", BuildTags, "../../../cmd/manager").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "sigs.k8s.io/controller-runtime") {
		t.Fatalf("these are not the packages of the manager: %s", out)
	}
	for _, unwanted := range []string{"text/template", "html/template"} {
		if slices.Contains(packages, unwanted) {
			t.Errorf("the manager imports %s; go list -deps -f '{{.ImportPath}} {{.Imports}}' -tags %s ./cmd/manager says by way of what", unwanted, BuildTags)
		}
	}
}
