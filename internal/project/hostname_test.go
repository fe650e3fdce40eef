// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReadsHostname(t *testing.T) {
	for _, test := range []struct {
		name, file, source string
		want               bool
	}{
		{"variable", "pkg/k8s/pod.go", `package k8s; var name = os.Getenv("HOSTNAME")`, true},
		{"function", "main.go", `package main; func main() { name, err := os.Hostname() }`, true},
		{"another variable", "main.go", `package main; var name = os.Getenv("POD_NAME")`, false},
		{"test", "main_test.go", `package main; var name = os.Getenv("HOSTNAME")`, false},
		{"dependency", "vendor/example.com/a/a.go", `package a; var name = os.Getenv("HOSTNAME")`, false},
		{"another file", "run.sh", `echo "HOSTNAME"`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, filepath.FromSlash(test.file))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(test.source), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := (&Project{Dir: dir}).ReadsHostname(); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
