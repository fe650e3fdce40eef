// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gomodule finds the Go module that a folder is in.
package gomodule

import (
	"os"
	"path/filepath"
)

// File is the name of the file that makes a folder a module.
const File = "go.mod"

// Dir returns the folder of the module that an absolute path is in, and an empty string if there is none. Like the go
// command, it ignores a go.mod in the root of the folder for temporary files, where a stray file would otherwise
// capture everything below it.
func Dir(path string) string {
	temporary := os.TempDir()
	resolved, err := filepath.EvalSymlinks(temporary)
	if err != nil {
		resolved = temporary
	}
	for current := path; ; current = filepath.Dir(current) {
		_, err := os.Lstat(filepath.Join(current, File))
		if err == nil && current != temporary && current != resolved {
			return current
		}
		if filepath.Dir(current) == current {
			return ""
		}
	}
}
