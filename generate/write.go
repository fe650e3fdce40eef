// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// staged is a file whose new content lies beside it and only has to be renamed.
type staged struct {
	change
	temporary string
	target    string
}

// apply makes the changes, all of them or none. What can fail, such as a folder that cannot be written to or a full disk,
// fails while the new content is put beside the files; after that there are only renames, which are taken back if one of
// them fails.
func apply(m module, changes []change) (err error) {
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
		target, err := resolve(m.absolute(one.Path))
		if err != nil {
			return fmt.Errorf("writing %s: %w", one.Path, err)
		}
		file := staged{change: one, target: target}
		if err := makeFolders(filepath.Dir(target), &folders); err != nil {
			return fmt.Errorf("writing %s: %w", one.Path, err)
		}
		// Also for a file that will be removed: it shows whether that is possible.
		if file.temporary, err = writeBeside(target, one.content, one.mode); err != nil {
			return fmt.Errorf("writing %s: %w", one.Path, err)
		}
		files = append(files, file)
	}
	for i, file := range files {
		if err := file.commit(); err != nil {
			return errors.Join(fmt.Errorf("writing %s: %w", file.Path, err), takeBack(files[:i]))
		}
	}
	removeEmptyParents(m, changes)
	return nil
}

func (f staged) commit() error {
	if f.Kind == Leftover {
		_ = os.Remove(f.temporary) // it has shown what it was for, and would keep the folder from being empty
		return os.Remove(f.target)
	}
	return os.Rename(f.temporary, f.target)
}

// takeBack restores files that have been changed already.
func takeBack(files []staged) error {
	var failures []error
	for _, file := range files {
		if file.before == nil {
			failures = append(failures, os.Remove(file.target))
			continue
		}
		temporary, err := writeBeside(file.target, file.before, file.mode)
		if err == nil {
			err = os.Rename(temporary, file.target)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
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

func writeBeside(target string, content []byte, mode fs.FileMode) (name string, err error) {
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
func removeEmptyParents(m module, changes []change) {
	for _, one := range changes {
		if one.Kind != Leftover {
			continue
		}
		for dir := filepath.Dir(m.absolute(one.Path)); dir != m.dir && within(m.dir, dir); dir = filepath.Dir(dir) {
			if os.Remove(dir) != nil {
				break // it is not empty
			}
		}
	}
}
