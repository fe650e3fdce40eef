// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// endLinesAsInWindows does to all files what git does that is told to check them out for Windows.
func endLinesAsInWindows(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		unix := strings.ReplaceAll(string(content), "\r\n", "\n")
		return os.WriteFile(name, []byte(strings.ReplaceAll(unix, "\n", "\r\n")), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLinesThatEndAsInWindows makes and deletes a kind with webhooks in a project whose lines end differently. All that was
// there ends as before, and apart from that nothing is different from another project.
func TestLinesThatEndAsInWindows(t *testing.T) {
	unix, windows := t.TempDir(), t.TempDir()
	for _, dir := range []string{unix, windows} {
		must(t)(Init(inits(dir)))
	}
	endLinesAsInWindows(t, windows)
	before := snapshot(t, windows)
	for _, dir := range []string{unix, windows} {
		must(t)(CreateAPI(frigate(dir)))
		must(t)(CreateWebhook(WebhookOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Frigate", Defaulting: true, Validation: true}))
	}
	made := snapshot(t, windows)
	for name := range before {
		if strings.Count(made[name], "\n") != strings.Count(made[name], "\r\n") {
			t.Errorf("lines of %s end in two ways", name)
		}
	}
	for name, content := range made {
		made[name] = strings.ReplaceAll(content, "\r\n", "\n")
	}
	expectSame(t, snapshot(t, unix), made)

	endLinesAsInWindows(t, windows)
	must(t)(DeleteAPI(DeleteOptions{Dir: windows, Group: "ship", Version: "v1", Kind: "Frigate"}))
	expectSame(t, before, snapshot(t, windows))
}
