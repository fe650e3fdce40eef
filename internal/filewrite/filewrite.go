// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filewrite changes several files of a project, all of them or none, even if the process is killed meanwhile.
//
// Before anything is touched, a journal in the project says what will be changed and what was there before. When all is
// done the journal is removed. A journal that is found later and that no process holds belongs to one that was killed:
// Recover takes back what it had done.
package filewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Change is a file that has to be written or removed.
type Change struct {
	Path    string // relative to the root, with slashes; or absolute
	Content []byte // what it should be
	Before  []byte // what it is; nil if it is not
	Mode    fs.FileMode
	Remove  bool
}

// checkpoint is called wherever it matters whether the process goes on. Tests end it there.
var checkpoint = func() {}

// Apply makes the changes, all of them or none: as a part of the transaction that the context carries, if there is one.
// Folders of the root that lose their last file are removed.
func Apply(ctx context.Context, root string, changes []Change) error {
	if open, inside := ctx.Value(transactionKey{}).(*Transaction); inside {
		return open.Apply(changes)
	}
	if len(changes) == 0 {
		return nil
	}
	t, err := Begin(ctx, root)
	if err != nil {
		return err
	}
	if err := t.Apply(changes); err != nil {
		return errors.Join(err, t.Rollback())
	}
	return t.Commit()
}

// Replace writes a single file. Readers see the old content or the new, never a part.
func Replace(file string, content []byte, mode fs.FileMode) error {
	target, err := resolve(file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // others may read it
		return err
	}
	temporary := temporaryFor(target)
	written, err := createTemporary(beyond(""), temporary, content, mode)
	if err != nil {
		return err
	}
	if err = errors.Join(written.Close(), os.Rename(temporary, target)); err != nil {
		_ = os.Remove(temporary)
	}
	return err
}

// createTemporary writes a file that was not there, and leaves it open so that it can be synchronised with the disk.
func createTemporary(in folder, name string, content []byte, mode fs.FileMode) (*os.File, error) {
	file, err := in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(mode.Perm())); err != nil {
		return nil, errors.Join(err, file.Close(), in.Remove(name))
	}
	return file, nil
}

func absolute(root, file string) string {
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(root, filepath.FromSlash(file))
}

// resolve follows a symbolic link, so that it stays one. What does not exist yet is resolved as far as it does.
func resolve(file string) (string, error) {
	target, err := filepath.EvalSymlinks(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return target, err
	}
	parent, err := resolve(filepath.Dir(file))
	return filepath.Join(parent, filepath.Base(file)), err
}

// missingFolders are those that a file needs and that are not there, outermost first.
func missingFolders(dir string) ([]string, error) {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory", dir)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	missing, err := missingFolders(filepath.Dir(dir))
	return append(missing, dir), err
}

// content returns what a file is, and nil if there is none.
func content(file string) ([]byte, error) { return contentIn(beyond(""), file) }

func contentIn(in folder, file string) ([]byte, error) {
	found, err := in.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && found == nil {
		found = []byte{}
	}
	return found, err
}

// same reports whether two files are alike, and nil means that there is none.
func same(one, other []byte) bool { return (one == nil) == (other == nil) && bytes.Equal(one, other) }
