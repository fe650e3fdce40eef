// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// copyOf copies the data of a running etcd into a folder that a new one can start in.
func copyOf(t *testing.T, dir string) (copied string, revision int64) {
	t.Helper()
	source, err := Connect(dir, "etcd.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	copied = t.TempDir()
	data := filepath.Join(copied, "etcd")
	if err := CreateDataDir(data); err != nil {
		t.Fatal(err)
	}
	if err := source.Copy(t.Context(), Database(data)); err != nil {
		t.Fatal(err)
	}
	if revision, err = Revision(Database(data)); err != nil {
		t.Fatal(err)
	}
	if err := Adopt(data); err != nil {
		t.Fatal(err)
	}
	return copied, revision
}

func TestCopyOfARunningEtcd(t *testing.T) {
	// Deeper than the path of a socket may be long.
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	server, err := start(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	original := client(t, server)
	for i := range 300 {
		if _, err := original.Put(t.Context(), fmt.Sprint("key-", i%100), fmt.Sprint("value-", i)); err != nil {
			t.Fatal(err)
		}
	}
	copied, revision := copyOf(t, dir)
	if _, err := original.Put(t.Context(), "later", "value"); err != nil {
		t.Errorf("the original takes no writes any more: %v", err)
	}

	// A copy is started, stopped and started again, which finds out whether its log and its data agree.
	for round := range 2 {
		t.Chdir(copied)
		second, err := Start(t.Context(), Options{Dir: "etcd", Socket: "etcd.sock", Existing: round > 0})
		if err != nil {
			t.Fatal(err)
		}
		reader := client(t, second)
		got, err := reader.Get(t.Context(), "key-", clientv3.WithPrefix())
		if err != nil || got.Count != 100 {
			t.Fatalf("round %d: %v, %v", round, got, err)
		}
		if round == 0 && got.Header.Revision != revision {
			t.Errorf("revision %d in the file, %d in etcd", revision, got.Header.Revision)
		}
		old, err := reader.Get(t.Context(), "key-7", clientv3.WithRev(revision-200))
		if err != nil || old.Count != 1 || string(old.Kvs[0].Value) != "value-7" {
			t.Errorf("round %d: an old revision: %v, %v", round, old, err)
		}
		if _, err := reader.Get(t.Context(), "later"); err != nil {
			t.Error(err)
		}
		if _, err := reader.Put(t.Context(), fmt.Sprint("own-", round), "value"); err != nil {
			t.Errorf("round %d: the copy takes no writes: %v", round, err)
		}
		if own, err := reader.Get(t.Context(), "own-0"); err != nil || own.Count != 1 {
			t.Errorf("round %d: its own write is lost: %v, %v", round, own, err)
		}
		_ = reader.Close()
		second.Stop()
	}
	if got, err := original.Get(t.Context(), "own-0"); err != nil || got.Count != 0 {
		t.Errorf("a write to the copy reached the original: %v, %v", got, err)
	}
}

// TestCopyIsOneRevision copies while pairs of keys are written in transactions: a copy never has half of one.
func TestCopyIsOneRevision(t *testing.T) {
	dir := t.TempDir()
	server, err := start(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	writer := client(t, server)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			value := strconv.Itoa(i)
			_, _ = writer.Txn(t.Context()).Then(clientv3.OpPut("left", value), clientv3.OpPut("right", value)).Commit()
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 5 {
		copied, _ := copyOf(t, dir)
		t.Chdir(copied)
		second, err := Start(t.Context(), Options{Dir: "etcd", Socket: "etcd.sock"})
		if err != nil {
			t.Fatal(err)
		}
		reader := client(t, second)
		left, leftErr := reader.Get(t.Context(), "left")
		right, rightErr := reader.Get(t.Context(), "right")
		if leftErr != nil || rightErr != nil {
			t.Fatal(leftErr, rightErr)
		}
		if left.Count != right.Count || (left.Count == 1 && string(left.Kvs[0].Value) != string(right.Kvs[0].Value)) {
			t.Errorf("left %v, right %v", left.Kvs, right.Kvs)
		}
		_ = reader.Close()
		second.Stop()
	}
}

func TestConnectWithoutListener(t *testing.T) {
	if _, err := Connect(t.TempDir(), "etcd.sock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no socket: %v", err)
	}
	dir := t.TempDir()
	server, err := start(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	// What kill -9 leaves.
	if err := os.Link(filepath.Join(dir, "etcd.sock"), filepath.Join(dir, "dead.sock")); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if _, err := Connect(dir, "dead.sock"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dead socket: %v", err)
	}
}

func TestAdoptRefusesWhatIsNoDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := CreateDataDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(Database(dir), []byte(strings.Repeat("x", 64<<10)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Adopt(dir); err == nil {
		t.Error("it was taken for a database")
	}
}
