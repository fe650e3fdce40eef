// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import "github.com/opdock/opdock/internal/cli/clitest"

// newConsole is a user of the whole program.
func newConsole(dock *clitest.FakeDock) *clitest.Console {
	s := clitest.NewConsole(dock)
	s.WithVerbs = withVerbs
	return s
}
