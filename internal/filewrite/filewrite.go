// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filewrite changes several files of a project, all of them or none.
package filewrite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Change is a file that has to be written or removed.
type Change struct {
	Path    string // relative to the root, with slashes; or absolute
	Content []byte // what it should be
	Before  []byte // what it is; nil if it is not
	Mode    fs.FileMode
	Remove  bool
}

// staged is a file whose new content lies beside it and only has to be renamed.
type staged struct {
	Change
	temporary string
	target    string
}

// Apply makes the changes, all of them or none. What can fail, such as a folder that cannot be written to or a full disk,
// fails while the new content is put beside the files; after that there are only renames, which are taken back if one of
// them fails. Folders of the root that lose their last file are removed.
func Apply(root string, changes []Change) (err error) {
	var (
		files   []staged
		folders []string // made for new files, outermost first
	)
	defer func() {
		for _, file := range files {
			_ = os.Remove(file.temporary) // it is gone if all went well
		}
		if err != nil {
			removeEmpty(folders)
		}
	}()
	for _, one := range changes {
		target, err := resolve(absolute(root, one.Path))
		if err != nil {
			return fmt.Errorf("writing %s: %w", one.Path, err)
		}
		file := staged{Change: one, target: target}
		if err := makeFolders(filepath.Dir(target), &folders); err != nil {
			return fmt.Errorf("writing %s: %w", one.Path, err)
		}
		// Also for a file that will be removed: it shows whether that is possible.
		if file.temporary, err = Beside(target, one.Content, one.Mode); err != nil {
			return fmt.Errorf("writing %s: %w", one.Path, err)
		}
		files = append(files, file)
	}
	for i, file := range files {
		if err := file.commit(); err != nil {
			return errors.Join(fmt.Errorf("writing %s: %w", file.Path, err), takeBack(files[:i]))
		}
	}
	removeEmptyParents(root, changes)
	return nil
}

func (f staged) commit() error {
	if f.Remove {
		_ = os.Remove(f.temporary) // it has shown what it was for, and would keep the folder from being empty
		return os.Remove(f.target)
	}
	return os.Rename(f.temporary, f.target)
}

// takeBack restores files that have been changed already.
func takeBack(files []staged) error {
	var failures []error
	for _, file := range files {
		if file.Before == nil {
			failures = append(failures, os.Remove(file.target))
			continue
		}
		temporary, err := Beside(file.target, file.Before, file.Mode)
		if err == nil {
			err = os.Rename(temporary, file.target)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// Reverse returns the changes that take the given ones back.
func Reverse(changes []Change) []Change {
	reversed := make([]Change, 0, len(changes))
	for _, one := range changes {
		back := Change{Path: one.Path, Content: one.Before, Before: one.Content, Mode: one.Mode, Remove: one.Before == nil}
		if one.Remove {
			back.Before = nil
		}
		reversed = append(reversed, back)
	}
	return reversed
}

func absolute(root, file string) string {
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(root, filepath.FromSlash(file))
}

// resolve follows a symbolic link, so that it stays one.
func resolve(file string) (string, error) {
	target, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	return target, err
}

// makeFolders makes a folder and those above it, and notes which are new.
func makeFolders(dir string, made *[]string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeFolders(filepath.Dir(dir), made); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // source code, which others may read
		return err
	}
	*made = append(*made, dir)
	return nil
}

// Beside writes a temporary file into the folder of the target, to be renamed to it.
func Beside(target string, content []byte, mode fs.FileMode) (name string, err error) {
	// A name that neither go nor the search for packages takes for source.
	file, err := os.CreateTemp(filepath.Dir(target), ".opdock-*.tmp")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	return file.Name(), errors.Join(err, file.Chmod(mode), file.Close())
}

// removeEmpty removes folders that were made, innermost first.
func removeEmpty(folders []string) {
	for i := len(folders) - 1; i >= 0; i-- {
		_ = os.Remove(folders[i]) // one that is not empty stays
	}
}

// removeEmptyParents removes the folders that have lost their last file.
func removeEmptyParents(root string, changes []Change) {
	for _, one := range changes {
		if !one.Remove {
			continue
		}
		for dir := filepath.Dir(absolute(root, one.Path)); strings.HasPrefix(dir, root+string(filepath.Separator)); dir = filepath.Dir(dir) {
			if os.Remove(dir) != nil {
				break // it is not empty
			}
		}
	}
}
