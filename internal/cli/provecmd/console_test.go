// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package provecmd

import "github.com/opdock/opdock/internal/cli/clitest"

// newConsole is a user of the verbs of this package.
func newConsole(dock *clitest.FakeDock) *clitest.Console {
	return clitest.NewConsole(dock, NewProve)
}
