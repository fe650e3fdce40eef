// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
)

const referenceHeader = `# Reference

What ` + "`opdock VERB --help`" + ` says, for reading and searching. A test writes this page:
` + "`go test ./internal/cli -run TestHelp -update`" + `.

`

// TestHelpReference keeps docs/cli.md the same as what the verbs say about themselves.
func TestHelpReference(t *testing.T) {
	root := withVerbs(newConsole(nil).App)
	var verbs []*cobra.Command
	var collect func(*cobra.Command)
	collect = func(cmd *cobra.Command) {
		verbs = append(verbs, cmd)
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
				collect(sub)
			}
		}
	}
	collect(root)
	var contents, body strings.Builder
	for _, verb := range verbs {
		s := newConsole(nil)
		code := s.Run(t.Context(), append(strings.Fields(verb.CommandPath())[1:], "--help"))
		clitest.ExpectCode(t, code, cmdutil.ExitOK)
		anchor := strings.ReplaceAll(verb.CommandPath(), " ", "-")
		fmt.Fprintf(&contents, "- [%s](#%s): %s\n", verb.CommandPath(), anchor, verb.Short)
		fmt.Fprintf(&body, "\n## %s\n\n```text\n%s\n```\n", verb.CommandPath(), strings.TrimSpace(s.OutText.String()))
	}
	got := referenceHeader + contents.String() + body.String()
	path := filepath.Join("..", "..", "docs", "cli.md")
	if *golden.Update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading the reference (run the test with -update to write it): %v", err)
	}
	if string(want) != got {
		t.Errorf("%s is not what the verbs say; run the test with -update", path)
	}
}
