// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package importer

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/testenv"
)

// TestInterruptedCluster is about a server that accepts connections and does not answer.
func TestInterruptedCluster(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for {
					if _, err := listener.Accept(); err != nil {
						return
					}
					cancel()
				}
			}()
			// Without the interruption, the error is a timeout.
			_, _, err = FromCluster(ctx, &rest.Config{Host: scheme + "://" + listener.Addr().String()}, Options{})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func pipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestInterruptedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	pipe(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		writer, err := os.OpenFile(path, os.O_WRONLY, 0) // once the other side reads
		if err != nil {
			t.Error(err)
		}
		t.Cleanup(func() { writer.Close() })
		cancel()
	}()
	if _, _, err := FromFiles(ctx, path, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestPipe is about input that is not in a file, such as /dev/stdin.
func TestPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	pipe(t, path)
	go func() {
		if err := os.WriteFile(path, []byte(prices), 0); err != nil {
			t.Error(err)
		}
	}()
	read, _, err := FromFiles(t.Context(), path, Options{})
	if got := names(read); err != nil || !slices.Equal(got, []string{"configmaps shop/prices"}) {
		t.Errorf("got %q and %v", got, err)
	}
}

func TestFolderWithPipe(t *testing.T) {
	t.Parallel()
	folder := testenv.Dir(t, map[string]string{"prices.yaml": prices})
	pipe(t, filepath.Join(folder, "pipe.yaml"))
	if err := os.Symlink("prices.yaml", filepath.Join(folder, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	read, report, err := FromFiles(t.Context(), folder, Options{})
	if got := names(read); err != nil || !slices.Equal(got, []string{"configmaps shop/prices"}) {
		t.Errorf("got %q and %v", got, err)
	}
	if !slices.Equal(report.Irregular, []string{"pipe.yaml"}) {
		t.Errorf("passed over: %q", report.Irregular)
	}
}
