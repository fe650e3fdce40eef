// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// repository has a project in a subfolder, at two commits, and a change that is not committed.
func repository(t *testing.T) (top string) {
	t.Helper()
	top = t.TempDir()
	testenv.WriteFile(t, filepath.Join(top, "operator", "go.mod"), "module example.com/operator\n")
	testenv.WriteFile(t, filepath.Join(top, "operator", "main.go"), "package main // old\n")
	testenv.WriteFile(t, filepath.Join(top, "shared", "shared.go"), "package shared\n")
	testenv.WriteFile(t, filepath.Join(top, ".gitattributes"), "shared export-ignore\n")
	inGit(t, top, "init", "--quiet")
	inGit(t, top, "add", ".")
	inGit(t, top, "commit", "--quiet", "-m", "old")
	inGit(t, top, "tag", "v1.0.0")
	testenv.WriteFile(t, filepath.Join(top, "operator", "main.go"), "package main // new\n")
	inGit(t, top, "commit", "--quiet", "-am", "new")
	testenv.WriteFile(t, filepath.Join(top, "operator", "main.go"), "package main // being edited\n")
	return top
}

func inGit(t *testing.T, dir string, arguments ...string) string {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, arguments...)...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", arguments, err, output)
	}
	return string(output)
}

func TestCheckOut(t *testing.T) {
	top := repository(t)
	status := inGit(t, top, "status", "--porcelain=v2", "--branch")
	r, err := Project{Dir: filepath.Join(top, "operator")}.Get(t.Context(), "v1.0.0", filepath.Join(t.TempDir(), "release"))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(r.Dir, "main.go")); err != nil || string(content) != "package main // old\n" {
		t.Errorf("main.go of v1.0.0 is %q, %v", content, err)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "..", "shared", "shared.go")); err != nil {
		t.Errorf("a folder that go.mod may refer to is missing: %v", err)
	}
	if commit := inGit(t, top, "rev-parse", "v1.0.0"); r.Name != "v1.0.0 ("+commit[:shortCommit]+")" {
		t.Errorf("the release is called %q, and its commit is %s", r.Name, commit)
	}
	if content, err := os.ReadFile(filepath.Join(top, "operator", "main.go")); err != nil || string(content) != "package main // being edited\n" {
		t.Errorf("the work tree has changed: %q, %v", content, err)
	}
	if now := inGit(t, top, "status", "--porcelain=v2", "--branch"); now != status {
		t.Errorf("git status was\n%s\nand is\n%s", status, now)
	}
	if trees := inGit(t, top, "worktree", "list"); strings.Count(trees, "\n") != 1 {
		t.Errorf("a work tree was added:\n%s", trees)
	}
}

func TestCheckOutExplains(t *testing.T) {
	top := repository(t)
	empty := filepath.Join(top, "empty")
	testenv.WriteFile(t, filepath.Join(empty, "go.mod"), "module example.com/late\n")
	outside := t.TempDir()
	for _, test := range []struct{ name, dir, ref, want, hint string }{
		{"not a repository", outside, "v1.0.0", "is not in a git repository", "git init"},
		{"unknown ref", filepath.Join(top, "operator"), "v9", `no commit, tag or branch "v9"`, "v1.0.0"},
		{"an option", filepath.Join(top, "operator"), "--all", `no commit, tag or branch "--all"`, "v1.0.0"},
		{"not there yet", empty, "v1.0.0", "no go.mod in empty", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Project{Dir: test.dir}.Get(t.Context(), test.ref, filepath.Join(t.TempDir(), "release"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			expectHint(t, err, test.hint)
		})
	}
}
