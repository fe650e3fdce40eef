// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ReadsHostname reports whether the code of the project reads the name of its host. In a pod, this is the name of the pod, which
// the operator may look up.
func (p *Project) ReadsHostname() bool {
	found := false
	// What cannot be read is not compiled either, and then the compiler says so.
	_ = filepath.WalkDir(p.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // see above
		case entry.IsDir() && path != p.Dir && (leftOut(entry.Name()) || isNestedModule(path)):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err == nil && (bytes.Contains(source, []byte(`"HOSTNAME"`)) || bytes.Contains(source, []byte("os.Hostname("))) {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}
