// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestReflow(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 30)
	page := "## A heading\n\n" + long + "\nand more.\n| a table | " + long + "|\n\n```\n" + long + "\n```\n\nShort.\n"
	line := strings.TrimSpace(strings.Repeat("word ", 23))
	want := "## A heading\n\n" + line + "\n" + strings.Repeat("word ", 7) + "and more.\n| a table | " + long + "|\n\n```\n" + long + "\n```\n\nShort.\n"
	if got := reflow(page); got != want {
		t.Errorf("reflow:\n%s\nwant:\n%s", got, want)
	}
	if again := reflow(want); again != want {
		t.Errorf("reflow changes text that it has already reflowed:\n%s", again)
	}
}
