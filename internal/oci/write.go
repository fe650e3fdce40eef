// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// WriteFolder writes the image in the layout of the Open Container Initiative as a folder, which replaces what was there.
func (l Layout) WriteFolder(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	return written.AppendIndex(l.images, layout.WithAnnotations(l.references))
}

// WriteTar writes the same as an archive, which is always the same for the same image.
func (l Layout) WriteTar(out io.Writer, created time.Time) error {
	folder, err := os.MkdirTemp("", "opdock-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := l.WriteFolder(folder); err != nil {
		return err
	}
	archive := tar.NewWriter(out)
	// In the order of their names.
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		return addFile(archive, filepath.ToSlash(name), path, created)
	})
	return errors.Join(err, archive.Close())
}

func addFile(archive *tar.Writer, name, path string, created time.Time) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: 0o644, Size: info.Size(), ModTime: created.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if _, err := io.Copy(archive, file); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
