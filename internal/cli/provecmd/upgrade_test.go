// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package provecmd

import (
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
)

func TestUpgradeUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"prove --families upgrade":                           "--families upgrade needs --upgrade-from RELEASE",
		"prove --families crash,upgrade":                     "--families upgrade needs --upgrade-from RELEASE",
		"prove --families crash --upgrade-from v1.0.0":       "--upgrade-from is for the family upgrade: add it to --families",
		"prove --upgrade-image ship.tar":                     "--upgrade-image needs --upgrade-from RELEASE",
		"prove --replay upgrade-1 --upgrade-from v1.0.0":     "--replay cannot be used with --upgrade-from",
		"prove --families upgrades --upgrade-from v1.0.0":    `there is no family "upgrades"`,
		"prove --upgrade-from v1.0.0 --budget 0s --seed 123": "--budget must be more than 0",
	} {
		code, screen := clitest.NewConsole(&clitest.FakeDock{}, NewProve).Screen(t.Context(), strings.Fields(line)...)
		if code != cmdutil.ExitUsage || !strings.Contains(screen, want) {
			t.Errorf("%s: exit code %d\n%s", line, code, screen)
		}
	}
}
