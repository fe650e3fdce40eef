// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

func TestHomeHasAllButTheKubeconfig(t *testing.T) {
	root := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(root, path)
		testenv.WriteFile(t, path, content)
	}
	write("real/.kube/config", "the user's")
	write("real/.kube/staging", "the user's")
	write("real/.aws/credentials", "secret")
	write("real/.old", "old")
	write("state/kubeconfig", "the operator's")
	users, home, kubeconfig := filepath.Join(root, "real"), filepath.Join(root, "state/home"), filepath.Join(root, "state/kubeconfig")
	expect := func(path, want string) {
		t.Helper()
		content, _ := os.ReadFile(filepath.Join(home, path))
		if string(content) != want {
			t.Errorf("%s is %q, want %q", path, content, want)
		}
	}
	if err := makeHome(home, users, kubeconfig); err != nil {
		t.Fatal(err)
	}
	expect(".kube/config", "the operator's")
	expect(".kube/staging", "")
	expect(".aws/credentials", "secret")

	// The next session finds what the operator has written, and nothing that the user has removed.
	write("state/home/.notes", "own")
	write("state/home/.kube/cache", "own")
	if err := os.Remove(filepath.Join(users, ".old")); err != nil {
		t.Fatal(err)
	}
	write("real/.new", "new")
	if err := makeHome(home, users, kubeconfig); err != nil {
		t.Fatal(err)
	}
	expect(".kube/config", "the operator's")
	expect(".kube/cache", "")
	expect(".notes", "own")
	expect(".new", "new")
	if _, err := os.Lstat(filepath.Join(home, ".old")); !os.IsNotExist(err) {
		t.Errorf("a link leads nowhere: %v", err)
	}
	if err := makeHome(filepath.Join(root, "other"), "", kubeconfig); err != nil {
		t.Errorf("a user without a home: %v", err)
	}
	content, err := os.ReadFile(filepath.Join(users, ".kube/config"))
	if err != nil || string(content) != "the user's" {
		t.Errorf("the user's kubeconfig is %q, %v", content, err)
	}
}
