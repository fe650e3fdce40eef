// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/opdock/opdock/cluster"
)

// smallDisk mounts a disk of some megabytes until the test has ended and the clusters on it as well.
func smallDisk(t *testing.T, megabytes int) (home string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	home = t.TempDir()
	if err := syscall.Mount("opdock-test", home, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		t.Skipf("no disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(home, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return home
}

func TestDiskFullAtStart(t *testing.T) {
	home := smallDisk(t, 32)
	u := newCLIIn(t, home)
	u.fails(t, "full", "up")
	u.fails(t, home, "up") // where
	u.fails(t, "OPDOCK_HOME", "up")
	if s := u.status(t, "dock"); s.State != cluster.NeverStarted {
		t.Errorf("after that: %+v", s)
	}
}

// TestDiskFullWhileRunning fills the disk under a running cluster. It may die of it, but after some room is made
// everything that it has acknowledged is there.
func TestDiskFullWhileRunning(t *testing.T) {
	home := smallDisk(t, 192)
	u := newCLIIn(t, home)
	u.ok(t, "up")
	config := must(clientcmd.BuildConfigFromFlags("", u.status(t, "dock").Kubeconfig))(t)
	client := clientFor(t, config).CoreV1().ConfigMaps("default")
	var acknowledged []string
	for i := range 20 {
		small := configMap(fmt.Sprintf("small-%d", i))
		must(client.Create(t.Context(), small, metav1.CreateOptions{}))(t)
		acknowledged = append(acknowledged, small.Name)
	}

	ballast := filepath.Join(home, "ballast")
	fill(t, ballast)
	for {
		big := configMap(fmt.Sprintf("big-%d", len(acknowledged)))
		big.Data = map[string]string{"text": strings.Repeat("x", 900<<10)}
		if _, err := client.Create(t.Context(), big, metav1.CreateOptions{}); err != nil {
			t.Logf("after %d: %v", len(acknowledged), err)
			break
		}
		acknowledged = append(acknowledged, big.Name)
		if len(acknowledged) > 500 {
			t.Fatal("more is stored than there is room")
		}
	}

	if s := u.status(t, "dock"); s.State == cluster.Alive {
		u.run(t, "down")
	}
	u.fails(t, "full", "up")
	try(t, os.Remove(ballast))
	u.ok(t, "up")
	u.ok(t, append([]string{"kubectl", "get", "configmap", "-o", "name"}, acknowledged...)...)
	u.ok(t, "kubectl", "create", "configmap", "another")
}

// fill takes all the room there is.
func fill(t *testing.T, path string) {
	t.Helper()
	file := must(os.Create(path))(t)
	defer file.Close()
	block := make([]byte, 64<<10)
	for {
		_, err := file.Write(block)
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		try(t, err)
	}
}

// TestDiskFullDuringACopy has room for a cluster, but not for a copy of it. The original does not notice.
func TestDiskFullDuringACopy(t *testing.T) {
	home := smallDisk(t, 420)
	u := newCLIIn(t, home)
	u.ok(t, "up", "--quiet")
	config := must(clientcmd.BuildConfigFromFlags("", u.status(t, "dock").Kubeconfig))(t)
	client := clientFor(t, config).CoreV1().ConfigMaps("default")
	for i := range 100 {
		big := configMap(fmt.Sprintf("big-%d", i))
		big.Data = map[string]string{"text": strings.Repeat("x", 900<<10)}
		must(client.Create(t.Context(), big, metav1.CreateOptions{}))(t)
	}
	// Enough for the check at the start, not for all the data.
	fillUntil(t, filepath.Join(home, "ballast"), home, 135<<20)
	u.fails(t, "full", "fork", "copy")
	u.fails(t, "full", "fork", "copy") // nothing is left behind that takes the name or the room
	if s := u.status(t, "copy"); s.State != cluster.NeverStarted {
		t.Errorf("the copy: %+v", s)
	}
	fillUntil(t, filepath.Join(home, "more"), home, 60<<20)
	u.fails(t, "full", "snapshot", "save", "base")
	if out := u.ok(t, "snapshot", "list", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("snapshots: %s", out)
	}
	u.ok(t, "kubectl", "create", "configmap", "another")
}

// fillUntil takes room until so many bytes are left.
func fillUntil(t *testing.T, path, home string, left uint64) {
	t.Helper()
	file := must(os.Create(path))(t)
	defer file.Close()
	block := make([]byte, 64<<10)
	for {
		var fs syscall.Statfs_t
		try(t, syscall.Statfs(home, &fs))
		if uint64(fs.Bavail)*uint64(fs.Bsize) <= left { //nolint:unconvert // the types differ between systems
			return
		}
		must(file.Write(block))(t)
	}
}
