// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

func TestCLISnapshots(t *testing.T) {
	u := newCLI(t)
	u.ok(t, "up", "--quiet")
	u.ok(t, "kubectl", "create", "configmap", "before")
	if out := u.ok(t, "snapshot", "save", "base"); !strings.Contains(out, "objects of cluster \"dock\" at revision") {
		t.Errorf("save prints:\n%s", out)
	}
	u.fails(t, "already a snapshot", "snapshot", "save", "base")
	u.ok(t, "kubectl", "create", "configmap", "after")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.snapshot")
	u.ok(t, "snapshot", "save", elsewhere)

	var listed []cluster.Snapshot
	try(t, json.Unmarshal([]byte(u.ok(t, "snapshot", "list", "-o", "json")), &listed))
	if len(listed) != 1 || listed[0].Name != "base" || listed[0].Cluster != "dock" {
		t.Fatalf("listed %+v", listed)
	}
	// The private keys of a cluster stay where they are.
	restored := start(t, cluster.Options{From: listed[0].Path})
	data := must(os.ReadFile(filepath.Join(restored.Dir(), "etcd", "member", "snap", "db")))(t)
	for _, key := range []string{"ca.key", "sa.key", "front-proxy-ca.key"} {
		secret := must(os.ReadFile(filepath.Join(u.status(t, "dock").Dir, "pki", key)))(t)
		if line := bytes.Split(secret, []byte("\n"))[1]; len(line) < 40 || bytes.Contains(data, line) {
			t.Errorf("%s is in the snapshot", key)
		}
	}

	u.ok(t, "up", "--quiet", "--name", "copy", "--from", "base")
	u.ok(t, "kubectl", "--name", "copy", "get", "configmap", "before")
	u.fails(t, "NotFound", "kubectl", "--name", "copy", "get", "configmap", "after")
	u.ok(t, "down", "--name", "copy")
	u.fails(t, "snapshot restore", "up", "--name", "copy", "--from", "base") // it has objects
	u.fails(t, "there is no snapshot", "up", "--name", "third", "--from", "nothing")

	server := u.status(t, "dock").Server
	u.ok(t, "snapshot", "restore", "base")
	u.fails(t, "NotFound", "kubectl", "get", "configmap", "after")
	u.ok(t, "kubectl", "get", "configmap", "before")
	if now := u.status(t, "dock").Server; now != server {
		t.Errorf("it moved from %s to %s", server, now)
	}
	u.ok(t, "snapshot", "restore", elsewhere, "--quiet")
	u.ok(t, "kubectl", "get", "configmap", "after")

	// What cannot be restored changes nothing: the cluster runs on, and a new one is not made.
	pid := u.status(t, "dock").PID
	content := must(os.ReadFile(listed[0].Path))(t)
	for says, bad := range map[string][]byte{
		"damaged":        content[:1000],
		"not a snapshot": []byte("apiVersion: v1\nkind: List\n"),
		"newer version":  bytes.Replace(content, []byte("opdock-snapshot/1"), []byte("opdock-snapshot/2"), 1),
	} {
		try(t, os.WriteFile(listed[0].Path, bad, 0o600))
		u.fails(t, says, "snapshot", "restore", "base")
		if now := u.status(t, "dock"); now.PID != pid {
			t.Errorf("%s: the cluster was stopped: %+v", says, now)
		}
		u.fails(t, says, "up", "--name", "third", "--from", "base")
		if now := u.status(t, "third"); now.State != cluster.NeverStarted {
			t.Errorf("%s: there is a new cluster: %+v", says, now)
		}
	}
	u.ok(t, "kubectl", "get", "configmap", "after")
	u.ok(t, "snapshot", "delete", "base")
	u.fails(t, "there is no snapshot", "snapshot", "delete", "base")
}

func TestCLIForks(t *testing.T) {
	u := newCLI(t)
	u.fails(t, "was never started", "fork")
	u.ok(t, "up", "--quiet")
	u.ok(t, "kubectl", "create", "configmap", keptName)
	if out := u.ok(t, "fork", "--count", "2", "--quiet"); out != "dock-fork-1\ndock-fork-2\n" {
		t.Errorf("fork prints:\n%s", out)
	}
	for _, name := range []string{"dock-fork-1", "dock-fork-2"} {
		u.ok(t, "kubectl", "--name", name, "get", "configmap", keptName)
	}
	u.ok(t, "kubectl", "--name", "dock-fork-1", "delete", "configmap", keptName)
	u.ok(t, "kubectl", "get", "configmap", keptName)
	u.fails(t, "already a cluster", "fork", "dock-fork-1")

	try(t, syscall.Kill(u.status(t, "dock").PID, syscall.SIGKILL))
	testenv.Eventually(t, "it is dead", func() bool { return u.status(t, "dock").State == cluster.Dead })
	u.fails(t, "opdock up", "fork", "third") // how to get it back
	if s := u.status(t, "third"); s.State != cluster.NeverStarted {
		t.Errorf("a fork of a dead cluster: %+v", s)
	}
}
