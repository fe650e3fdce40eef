// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
)

// TestFilesArePrivate looks at everything in the state folder, since keys are in more places than one would
// think: in kubeconfigs, in the database and in its log.
func TestFilesArePrivate(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	c := clustertest.Shared(t)
	seen := map[string]bool{}
	try(t, filepath.WalkDir(c.Dir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if os.IsNotExist(err) {
			return nil // a temporary file of a database that is at work
		}
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(c.Dir(), path)
		seen[name] = true
		want := fs.FileMode(0o600)
		if entry.IsDir() {
			want = 0o700
		}
		if mode := info.Mode().Perm(); info.Mode().Type() != fs.ModeSocket && mode != want {
			t.Errorf("%s has mode %v, not %v", name, mode, want)
		}
		return nil
	}))
	for _, name := range []string{".", "kubeconfig", "state.json", "lock", "pki", "pki/ca.key", "pki/apiserver.key", "etcd/member/snap/db"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

// pidOf reads which process runs a cluster from its lock file.
func pidOf(t *testing.T, c *cluster.Cluster) int {
	t.Helper()
	var holder struct{ PID int }
	try(t, json.Unmarshal(must(os.ReadFile(filepath.Join(c.Dir(), "lock")))(t), &holder))
	return holder.PID
}

// TestListensOnLoopbackOnly looks at the sockets that the process really has.
func TestListensOnLoopbackOnly(t *testing.T) {
	testenv.ControlPlane(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the sockets of a process as files")
	}
	t.Parallel()
	c := clustertest.Shared(t)
	own := socketsOf(t, pidOf(t, c))
	listening := 0
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, socket := range listeners(t, table) {
			if !own[socket.inode] {
				continue
			}
			listening++
			// In the kernel's notation, each word of the address has its bytes reversed.
			if !strings.HasPrefix(socket.address, "0100007F:") {
				t.Errorf("it listens on %s in %s", socket.address, table)
			}
		}
	}
	if listening != 1 {
		t.Errorf("it listens on %d TCP ports, not on that of the API server alone", listening)
	}
}

func socketsOf(t *testing.T, pid int) map[string]bool {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	inodes := map[string]bool{}
	for _, entry := range must(os.ReadDir(folder))(t) {
		target, _ := os.Readlink(filepath.Join(folder, entry.Name())) // may be closed by now
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes
}

type listener struct{ address, inode string }

func listeners(t *testing.T, table string) []listener {
	t.Helper()
	file, err := os.Open(table)
	if os.IsNotExist(err) {
		return nil // no IPv6
	}
	try(t, err)
	defer file.Close()
	var found []listener
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
		const stateListen = "0A"
		if fields := strings.Fields(lines.Text()); len(fields) > 9 && fields[3] == stateListen {
			found = append(found, listener{address: fields[1], inode: fields[9]})
		}
	}
	return found
}
