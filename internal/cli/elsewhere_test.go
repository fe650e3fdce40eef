// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster"
)

func TestFolderOfAProjectIsNamedToWhoeverIsBelow(t *testing.T) {
	w := newWorkshop(t)
	w.must(initYard, addFrigate)
	top := w.dir
	w.dir = filepath.Join(top, "api", "v1")
	for _, line := range []string{"create api --group ship --version v1 --kind Boat", addWebhook, "delete api --group ship --version v1 --kind Frigate"} {
		before := w.files()
		code, screen := w.run(t.Context(), strings.Fields(line)...)
		expectCode(t, code, exitUsage)
		if !strings.Contains(screen, "go there: cd "+top+"\n") || strings.Contains(screen, "opdock init") {
			t.Errorf("%s\n%s", line, screen)
		}
		if len(before) != len(w.files()) {
			t.Error("something was written")
		}
	}
}

func TestFlagsOfKubebuilderThatMeanNothingHere(t *testing.T) {
	newWorkshop(t).must(initYard + " --fetch-deps=false --project-version 3 --skip-go-version-check --plugins go/v4")
}

func TestClusterOfDevIsProposedToWhoeverNamesNone(t *testing.T) {
	yard := cluster.Status{Name: "yard", State: cluster.Alive}
	const hint = "to use the one that is alive: --name yard"
	for name, test := range map[string]struct {
		all  []cluster.Status
		args []string
		want bool
	}{
		"none named":  {[]cluster.Status{yard}, []string{"kubeconfig"}, true},
		"one named":   {[]cluster.Status{yard}, []string{"kubeconfig", "--name", "who"}, false},
		"none alive":  {[]cluster.Status{{Name: "yard", State: cluster.Stopped}}, []string{"kubeconfig"}, false},
		"two to take": {[]cluster.Status{yard, {Name: "other", State: cluster.Alive}}, []string{"kubeconfig"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			code, screen := newConsole(&fakeDock{clusters: clusters(test.all...)}).run(t.Context(), test.args...)
			expectCode(t, code, exitError)
			if got := strings.Contains(screen, hint); got != test.want {
				t.Errorf("hint: %t\n%s", got, screen)
			}
		})
	}
}
