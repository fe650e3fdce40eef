// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestPortInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	err = checkPort(port)
	var taken *PortError
	if !errors.As(err, &taken) || taken.Port != port {
		t.Fatalf("got %v", err)
	}
	if runtime.GOOS == "linux" && !strings.Contains(err.Error(), "(pid "+strconv.Itoa(os.Getpid())+")") {
		t.Errorf("it does not name this process: %v", err)
	}
	if found := portInLog([]string{"something", "failed: listen tcp :" + strconv.Itoa(port) + ": bind: address already in use"}); found == nil || found.Port != port {
		t.Errorf("in the log: %v", found)
	}
	if found := portInLog([]string{"listening on :8080"}); found != nil {
		t.Errorf("in the log: %v", found)
	}
}

func TestPortsAreRenewed(t *testing.T) {
	s := &Session{}
	if err := s.ports.renew(); err != nil {
		t.Fatal(err)
	}
	first := s.ports
	for _, port := range []int{first.probe, first.webhooks, first.records} {
		if err := checkPort(port); err != nil {
			t.Error(err)
		}
	}
	if first.probe == first.webhooks || first.webhooks == first.records || first.records == first.probe {
		t.Errorf("one port for two purposes: %+v", first)
	}
	renew := func() (todo work) {
		t.Helper()
		if err := s.renewPorts(t.Context(), nil, &todo); err != nil {
			t.Fatal(err)
		}
		return todo
	}
	if todo := renew(); todo != 0 || s.ports != first {
		t.Errorf("with free ports there is %b to do, and %+v became %+v", todo, first, s.ports)
	}
	take := func(host string, port int) {
		t.Helper()
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
	}
	take(loopback, first.probe)
	if todo := renew(); todo != workFlags || s.ports.probe == first.probe || s.ports.webhooks != first.webhooks || s.ports.records != first.records {
		t.Errorf("without the probe's port there is %b to do, and %+v became %+v", todo, first, s.ports)
	}
	take("", first.webhooks)
	if todo := renew(); todo != workFlags|workManifests || s.ports.webhooks == first.webhooks {
		t.Errorf("without the webhooks' port there is %b to do, and %+v became %+v", todo, first, s.ports)
	}
	// What an operator that runs listens on is not to be exchanged under its feet.
	taken := s.ports
	take(loopback, taken.records)
	s.process = &process{done: make(chan struct{})}
	if todo := renew(); todo != 0 || s.ports != taken {
		t.Errorf("while the operator runs there is %b to do, and %+v became %+v", todo, taken, s.ports)
	}
}

func TestLocalModules(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{
		"go.work":         "go 1.26\n\nuse (\n\t./operator\n\t./api\n)\n",
		"operator/go.mod": "module example.com/operator\n\ngo 1.26\n\nreplace example.com/lib => ../link\n\nreplace example.com/other => example.com/fork v1.0.0\n",
		"api/go.mod":      "module example.com/api\n\ngo 1.26\n",
		"lib/go.mod":      "module example.com/lib\n\ngo 1.26\n",
	})
	if err := os.Symlink("lib", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	got, err := localModules(t.Context(), filepath.Join(dir, "operator"), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "operator"), filepath.Join(dir, "api"), filepath.Join(dir, "lib")}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
