// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// program writes an executable file that does nothing.
func program(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindBinaryFromEnvironment(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	t.Chdir(dir)
	good := program(t, filepath.Join(dir, "bin", "cp"))
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{good: good, "bin/cp": good} {
		t.Setenv(binaryEnv, path)
		if got, err := FindBinary(); got != want || err != nil {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
	}
	for _, path := range []string{plain, dir, filepath.Join(dir, "missing")} {
		t.Setenv(binaryEnv, path)
		_, err := FindBinary()
		var none *NoBinaryError
		if err == nil || errors.As(err, &none) || !strings.Contains(err.Error(), binaryEnv) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := EnsureBinary(t.Context(), nil); err == nil || !strings.Contains(err.Error(), binaryEnv) {
			t.Errorf("%s: EnsureBinary falls through: %v", path, err)
		}
	}
}

func TestFindBinaryBesideOpdock(t *testing.T) {
	isolate(t)
	installed, linked := t.TempDir(), t.TempDir()
	opdock := program(t, filepath.Join(installed, "opdock"))
	if err := os.Symlink(opdock, filepath.Join(linked, "opdock")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", linked)
	t.Chdir(t.TempDir())

	_, err := FindBinary()
	var none *NoBinaryError
	if !errors.As(err, &none) {
		t.Fatalf("error is %v", err)
	}
	for _, want := range []string{filepath.Join(linked, binaryName), filepath.Join(installed, binaryName), filepath.Dir(testBinary(t)), binaryEnv} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in: %v", want, err)
		}
	}

	want := program(t, filepath.Join(installed, binaryName))
	if got, err := FindBinary(); got != want || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	want = program(t, filepath.Join(linked, binaryName))
	if got, err := FindBinary(); got != want || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAssets(t *testing.T) {
	isolate(t)
	binary := program(t, filepath.Join(t.TempDir(), binaryName))
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			dir, err := Assets(binary)
			if err != nil {
				t.Error(err)
				return
			}
			for _, name := range assetNames {
				if target, err := os.Readlink(filepath.Join(dir, name)); target != binary || err != nil {
					t.Errorf("%s: %s, %v", name, target, err)
				}
			}
		})
	}
	group.Wait()

	dir, err := Assets(binary)
	if err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != len(assetNames) {
		t.Errorf("the folder holds %v", entries)
	}
	// What is wrong is corrected.
	etcd := filepath.Join(dir, "etcd")
	if err := os.Remove(etcd); err != nil {
		t.Fatal(err)
	}
	program(t, etcd)
	if _, err := Assets(binary); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(etcd); target != binary {
		t.Errorf("etcd is %s, %v", target, err)
	}
	other, err := Assets(program(t, filepath.Join(t.TempDir(), binaryName)))
	if err != nil || other == dir {
		t.Errorf("another binary: %s, %v", other, err)
	}
	if _, err := Assets(filepath.Join(dir, "missing")); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("no binary: %v", err)
	}
}
