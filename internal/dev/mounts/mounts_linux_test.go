// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

func TestAProgramSeesOtherFilesAndAnotherHostname(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(root, name)
		testenv.WriteFile(t, path, content)
		return path
	}
	write("machine/there", "untouched")
	write("machine/folder/there", "untouched")
	if err := os.Symlink("folder", filepath.Join(root, "machine/link")); err != nil {
		t.Fatal(err)
	}
	existing := write("machine/existing", "the user's")
	list := List{Dir: filepath.Join(root, "stages"), Hostname: "the-pod", Files: []File{
		{Path: existing, Source: write("state/0", "mine")},
		{Path: filepath.Join(root, "machine/new/deep/file"), Source: write("state/1", "deep")},
		{Path: filepath.Join(root, "machine/new/deep/other"), Source: write("state/2", "other")},
		{Path: filepath.Join(root, "machine/second"), Source: write("state/3", "second")},
		{Path: filepath.Join(root, "machine/link/third"), Source: write("state/4", "third")},
		{Path: filepath.Join(root, "machine/new/whole"), Source: filepath.Dir(write("state/whole/inside", "whole"))},
		{Path: "/var/run/secrets/kubernetes.io/serviceaccount/namespace", Source: write("state/5", "harbour")},
	}}
	if err := os.Mkdir(list.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Check(list); err != nil {
		t.Skipf("this system does not let us: %v", err)
	}
	command := exec.Command("/bin/sh", "-c", `cd "$1" && cat existing new/deep/file new/deep/other new/whole/inside second folder/third there folder/there link/there /var/run/secrets/kubernetes.io/serviceaccount/namespace
		echo; id -u; uname -n; echo written > folder/there`, "sh", filepath.Join(root, "machine"))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := Wrap(command, list); err != nil {
		t.Fatal(err)
	}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	lines := strings.Split(string(output), "\n")
	if want := "minedeepotherwholesecondthirduntoucheduntoucheduntouchedharbour"; lines[0] != want {
		t.Errorf("got %s", output)
	}
	if user, err := exec.Command("id", "-u").Output(); err != nil || strings.TrimSpace(string(user)) != lines[1] {
		t.Errorf("it runs as user %s instead of %s, %v", lines[1], user, err)
	}
	if lines[2] != "the-pod" {
		t.Errorf("the host is named %s", lines[2])
	}
	if name, err := os.Hostname(); err != nil || name == "the-pod" {
		t.Errorf("this machine is named %s, %v", name, err)
	}
	// This machine's own files are as they were, but for what the program has written.
	for name, want := range map[string]string{"existing": "the user's", "there": "untouched", "folder/there": "written\n"} {
		if content, err := os.ReadFile(filepath.Join(root, "machine", name)); err != nil || string(content) != want {
			t.Errorf("%s is %q, %v", name, content, err)
		}
	}
	for _, name := range []string{"new", "second", "folder/third", ".opdock-mounts"} {
		if _, err := os.Lstat(filepath.Join(root, "machine", name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	missing := List{Dir: list.Dir, Files: []File{{Path: existing, Source: "/nonexistent"}}}
	if err := Check(missing); err == nil || !strings.Contains(err.Error(), existing) {
		t.Errorf("the error is %v", err)
	}
}
