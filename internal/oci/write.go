// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// WriteFolder writes the layout as a folder, which replaces what was there.
func (l Layout) WriteFolder(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for path, content := range l {
		path = filepath.Join(folder, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// WriteTar writes the layout as an archive, which is always the same for the same layout.
func (l Layout) WriteTar(out io.Writer, created time.Time) error {
	writer := tar.NewWriter(out)
	for _, path := range slices.Sorted(maps.Keys(l)) {
		header := &tar.Header{Name: path, Mode: 0o644, Size: int64(len(l[path])), ModTime: created.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := writer.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		if _, err := writer.Write(l[path]); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return writer.Close()
}
