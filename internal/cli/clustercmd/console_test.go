// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import "github.com/opdock/opdock/internal/cli/clitest"

// newConsole is a user of the verbs of this package.
func newConsole(dock *clitest.FakeDock) *clitest.Console {
	return clitest.NewConsole(dock, NewUp, NewDown, NewStatus, NewFork, NewSnapshot, NewImport, NewKubectl, NewKubeconfig, NewAssets,
		NewBuildControlPlane)
}
