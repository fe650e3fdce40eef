// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// start runs etcd in a folder, with its socket relative to the working
// directory as the control plane has it.
func start(t *testing.T, dir string) (*Server, error) {
	t.Helper()
	t.Chdir(dir)
	return Start(t.Context(), Options{Dir: "etcd", Socket: "etcd.sock"})
}

func client(t *testing.T, server *Server) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestDataSurvives(t *testing.T) {
	dir := t.TempDir()
	server, err := start(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, server).Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	server.Stop()

	if server, err = start(t, dir); err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	got, err := client(t, server).Get(t.Context(), "key")
	if err != nil || got.Count != 1 || string(got.Kvs[0].Value) != "value" {
		t.Errorf("after a restart: %v, %v", got, err)
	}
}

// An etcd that is killed while it starts for the first time may leave a log without the entry that makes it a voter.
func TestKilledBeforeTheFirstEntry(t *testing.T) {
	entry := raftpb.Entry{Term: 1, Index: 1, Type: raftpb.EntryConfChange}
	for name, entries := range map[string][]raftpb.Entry{"no entry": nil, "an entry that is not committed": {entry}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			member := filepath.Join(dir, "etcd", "member")
			if err := os.MkdirAll(member, 0o700); err != nil {
				t.Fatal(err)
			}
			metadata, err := (&etcdserverpb.Metadata{NodeID: 1, ClusterID: 1}).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			log, err := wal.Create(zap.NewNop(), filepath.Join(member, "wal"), metadata)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(log.Save(raftpb.HardState{}, entries), log.Close()); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			server, err := Start(ctx, Options{Dir: "etcd", Socket: "etcd.sock"})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Stop()
			if _, err := client(t, server).Put(t.Context(), "key", "value"); err != nil {
				t.Error(err)
			}
		})
	}
}

// overwrite garbles a file from an offset to its end.
func overwrite(path string, offset int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		_, err = file.WriteAt(bytes.Repeat([]byte("x"), int(info.Size()-offset)), offset)
	}
	return errors.Join(err, file.Close())
}

func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		sums[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func TestDamageIsRefusedAndLeftAlone(t *testing.T) {
	for name, damage := range map[string]func(database, log, dir string) error{
		"database garbled":       func(database, _, _ string) error { return overwrite(database, 0) },
		"database pages garbled": func(database, _, _ string) error { return overwrite(database, 16<<10) },
		"database cut off":       func(database, _, _ string) error { return os.Truncate(database, 100) },
		"database shortened":     func(database, _, _ string) error { return os.Truncate(database, 8192) },
		"database missing":       func(database, _, _ string) error { return os.Remove(database) },
		"log garbled":            func(_, log, _ string) error { return overwrite(log, 0) },
		"log entries garbled":    func(_, log, _ string) error { return overwrite(log, 1<<10) },
		"log cut off":            func(_, log, _ string) error { return os.Truncate(log, 600) },
		"log missing":            func(_, log, _ string) error { return os.Remove(log) },
		"all missing":            func(_, _, dir string) error { return os.RemoveAll(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			server, err := start(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			writer := client(t, server)
			for i := range 200 {
				if _, err := writer.Put(t.Context(), fmt.Sprint("key-", i), strings.Repeat("value", 100)); err != nil {
					t.Fatal(err)
				}
			}
			server.Stop()
			member := filepath.Join(dir, "etcd", "member")
			logs, err := filepath.Glob(filepath.Join(member, "wal", "*.wal"))
			if err != nil || len(logs) != 1 {
				t.Fatalf("logs: %v, %v", logs, err)
			}
			if err := damage(filepath.Join(member, "snap", "db"), logs[0], filepath.Join(dir, "etcd")); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(dir, "etcd"), 0o700); err != nil { // Start would
				t.Fatal(err)
			}
			before := hashes(t, dir)

			server, err = Start(t.Context(), Options{Dir: "etcd", Socket: "etcd.sock", Existing: true})
			if err == nil {
				server.Stop()
				t.Fatal("it starts")
			}
			if after := hashes(t, dir); !maps.Equal(before, after) {
				t.Errorf("files have changed: before %v, after %v", before, after)
			}
		})
	}
}

func TestCrashIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	server, err := start(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, server).Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	// The files as they are while it runs are what kill -9 leaves.
	crashed := t.TempDir()
	if err := os.CopyFS(filepath.Join(crashed, "etcd"), os.DirFS(filepath.Join(dir, "etcd"))); err != nil {
		t.Fatal(err)
	}
	server.Stop()

	t.Chdir(crashed)
	if server, err = Start(t.Context(), Options{Dir: "etcd", Socket: "etcd.sock", Existing: true}); err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	got, err := client(t, server).Get(t.Context(), "key")
	if err != nil || got.Count != 1 {
		t.Errorf("after the crash: %v, %v", got, err)
	}
}

func TestInterruptedStart(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Options{Dir: "etcd", Socket: "etcd.sock"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
