// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package filewrite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Recovered describes the leftovers of a process that was killed while writing.
type Recovered struct {
	// TakenBack are the files that were rolled back, and Edited those that were edited since. If there are edited
	// files, nothing is rolled back: the edits may depend on the written files.
	TakenBack, Edited []string
}

// Recover rolls back the changes of a killed process in a project. It waits for a process that is still writing.
func Recover(ctx context.Context, root string) (Recovered, error) {
	if _, err := os.Lstat(filepath.Join(root, JournalName)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Recovered{}, nil // there is no journal, or not even a folder for one
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return Recovered{}, err
	}
	t := &Transaction{root: root}
	if t.journal, err = openJournal(ctx, root); err != nil {
		return Recovered{}, err
	}
	found, err := t.recover()
	if err != nil {
		return Recovered{}, err
	}
	return found, t.journal.end()
}

// recover undoes what another process has written down. The journal may have come with the project from elsewhere, so
// only paths that our own journals can contain are changed.
func (t *Transaction) recover() (found Recovered, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("rolling back an interrupted write: %w", err), t.journal.file.Close())
		}
	}()
	left, err := t.journal.read()
	if err != nil || len(left) == 0 {
		return found, err
	}
	for i := range left {
		left[i].Folders = slices.DeleteFunc(left[i].Folders, t.foreign)
		left[i].Files = slices.DeleteFunc(left[i].Files, func(one entry) bool {
			return t.foreign(one.Path) || t.foreign(one.Temporary) || !isTemporaryFor(one.Temporary, one.Path)
		})
	}
	// A link that is created after the check does not lead out of the project either.
	confined, err := os.OpenRoot(t.root)
	if err != nil {
		return found, err
	}
	defer confined.Close()
	if found.TakenBack, found.Edited, err = undo(confined, left); err != nil {
		return found, err
	}
	return found, t.journal.file.Truncate(0)
}

// foreign reports whether a path is outside of the project, leads through a link, which what we write down never does, or
// belongs to git, which runs programs that it finds in its folder.
func (t *Transaction) foreign(path string) bool {
	target := absolute(t.root, path)
	resolved, err := resolve(target)
	return err != nil || resolved != target || !filepath.IsLocal(path) ||
		slices.ContainsFunc(strings.Split(path, string(filepath.Separator)), func(name string) bool { return strings.EqualFold(name, ".git") })
}

// undo makes files what they were before the first of the records, and says which were different; or which are neither
// what they were nor what the records made of them. It can be called again if it is interrupted.
func undo(in folder, records []record) (undone, edited []string, err error) {
	first := map[string]entry{}
	differs := map[string]bool{}
	for _, one := range records {
		for _, file := range one.Files {
			if _, known := first[file.Path]; !known {
				first[file.Path] = file
			}
		}
	}
	for path, file := range first {
		now, err := contentIn(in, path)
		if err != nil {
			return nil, nil, err
		}
		differs[path] = !same(now, file.Before)
		if differs[path] && !madeBy(records, path, hashOf(now)) {
			edited = append(edited, path)
		}
	}
	slices.Sort(edited)
	for _, one := range slices.Backward(records) {
		for _, file := range slices.Backward(one.Files) {
			if err := removeIfThere(in, file.Temporary); err != nil {
				return nil, nil, err
			}
			if first[file.Path].Temporary != file.Temporary || len(edited) > 0 || !differs[file.Path] {
				continue
			}
			if err := restore(in, file); err != nil {
				return nil, nil, fmt.Errorf("restoring %s: %w", file.Path, err)
			}
			undone = append(undone, file.Path)
			checkpoint()
		}
		for _, dir := range slices.Backward(one.Folders) {
			_ = in.Remove(dir) // one that is not empty stays
			checkpoint()
		}
	}
	slices.Sort(undone)
	return undone, edited, nil
}

func madeBy(records []record, path, hash string) bool {
	return slices.ContainsFunc(records, func(one record) bool {
		return slices.ContainsFunc(one.Files, func(file entry) bool { return file.Path == path && file.After == hash })
	})
}

// restore makes a file what it was. The temporary file has the name that the journal knows, in case this is interrupted too.
func restore(in folder, file entry) error {
	if file.Before == nil {
		return in.Remove(file.Path)
	}
	if err := in.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
		return err
	}
	content, err := createTemporary(in, file.Temporary, file.Before, file.Mode)
	if err != nil {
		return err
	}
	checkpoint()
	if err := errors.Join(content.Sync(), content.Close()); err != nil {
		return err
	}
	return in.Rename(file.Temporary, file.Path)
}

func removeIfThere(in folder, file string) error {
	if err := in.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
