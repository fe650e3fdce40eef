// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
)

func TestProjectIsNamedInItsSubfolders(t *testing.T) {
	w := newWorkshop(t)
	w.must(initYard, addFrigate)
	top := w.dir
	w.dir = filepath.Join(top, "api", "v1")
	for _, line := range []string{"create api --group ship --version v1 --kind Boat", addWebhook, "delete api --group ship --version v1 --kind Frigate"} {
		before := w.files()
		code, screen := w.run(t.Context(), strings.Fields(line)...)
		clitest.ExpectCode(t, code, cmdutil.ExitUsage)
		if !strings.Contains(screen, "change to it: cd "+top+"\n") || strings.Contains(screen, "opdock init") {
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
