// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/devcmd"
)

// newConsole is a user of the verbs of this package, and of dev, which takes projects back as they do.
func newConsole(dock *clitest.FakeDock) *clitest.Console {
	return clitest.NewConsole(dock, NewInit, NewCreate, NewDelete, NewGenerate, NewBuild,
		NewInstall, NewUninstall, NewDeploy, NewUndeploy, devcmd.NewDev)
}
