// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func expect(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	one, other := open(t, path), open(t, path)
	expect(t, Exclusive(one), nil)
	expect(t, Exclusive(other), ErrHeld)
	expect(t, Shared(other), ErrHeld)
	expect(t, Release(one), nil)
	expect(t, Shared(one), nil)
	expect(t, Shared(other), nil)
	expect(t, Exclusive(other), ErrHeld)
	// To close the file is to release the lock.
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, Exclusive(other), nil)
	if err := Exclusive(one); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a closed file is locked: %v", err)
	}
}

func TestAwait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	one, other := open(t, path), open(t, path)
	expect(t, Exclusive(one), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect(t, Await(ctx, other, time.Millisecond), ErrHeld)
	done := make(chan error)
	go func() { done <- Await(t.Context(), other, time.Millisecond) }()
	expect(t, Release(one), nil)
	expect(t, <-done, nil)
}
