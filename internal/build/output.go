// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/oci"
)

// checkOutput returns an error if the image would replace files that are not an image.
func checkOutput(output string) error {
	info, err := os.Stat(output)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	isArchive := strings.HasSuffix(output, ".tar")
	switch {
	case isArchive && info.IsDir():
		return fmt.Errorf("%s is a directory and cannot be replaced by an archive", output)
	case isArchive:
		return nil
	case !info.IsDir():
		return fmt.Errorf("%s is a file; use a name that ends in .tar for an archive, or another name for a directory", output)
	}
	entries, err := os.ReadDir(output)
	if err != nil {
		return err
	}
	isLayout := func(entry os.DirEntry) bool { return entry.Name() == "oci-layout" }
	if len(entries) > 0 && !slices.ContainsFunc(entries, isLayout) {
		return hint.With(fmt.Errorf("%s contains files that do not belong to an image and would be lost", output), "choose another directory: --output")
	}
	return nil
}

// writeImage writes the image. It replaces an archive in one step, so other programs never read a part of one.
func writeImage(layout oci.Layout, output string, created time.Time) error {
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return err
	}
	if !strings.HasSuffix(output, ".tar") {
		return layout.WriteFolder(output)
	}
	archive, err := os.CreateTemp(filepath.Dir(output), ".image-*")
	if err != nil {
		return err
	}
	defer os.Remove(archive.Name()) // does nothing once it has been renamed
	if err := errors.Join(layout.WriteTar(archive, created), archive.Chmod(0o644), archive.Close()); err != nil {
		return err
	}
	return os.Rename(archive.Name(), output)
}
