// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
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

func TestDamageIsAnErrorNotAnExit(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"database garbled":   func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("x", 1<<16)), 0o600) },
		"database truncated": func(path string) error { return os.Truncate(path, 100) },
		"database shortened": func(path string) error { return os.Truncate(path, 8192) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			server, err := start(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			server.Stop()
			if err := damage(filepath.Join(dir, "etcd", "member", "snap", "db")); err != nil {
				t.Fatal(err)
			}
			if server, err = start(t, dir); err == nil {
				server.Stop()
				t.Error("it starts")
			}
		})
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
