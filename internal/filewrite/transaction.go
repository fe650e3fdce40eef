// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package filewrite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Transaction is changes that belong together: all of them last, or none. No other transaction can change the project meanwhile.
type Transaction struct {
	root    string
	journal *journal
	records []record
	made    []string // folders down to the root, which have no place in a journal below them
}

type transactionKey struct{}

// ErrNotTakenBack is part of the error if what has failed could not be undone either.
var ErrNotTakenBack = errors.New("the changes could not be rolled back")

// Begin opens a transaction in a folder, which is made if it is not there.
func Begin(ctx context.Context, root string) (*Transaction, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if root, err = resolve(root); err != nil {
		return nil, err
	}
	t := &Transaction{root: root}
	if t.made, err = missingFolders(root); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // source code, which others may read
		return nil, err
	}
	if t.journal, err = openJournal(ctx, root); err != nil {
		removeEmpty(t.made)
		return nil, fmt.Errorf("preparing to write: %w", err)
	}
	if _, err := t.recover(); err != nil {
		return nil, err
	}
	checkpoint()
	return t, nil
}

// Context makes what is written with it part of the transaction.
func (t *Transaction) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, transactionKey{}, t)
}

// Apply makes changes. If it fails, the transaction has to be rolled back. What can fail, such as a folder that cannot be
// written to or a full disk, fails while the new content is put beside the files; after that there are only renames.
func (t *Transaction) Apply(changes []Change) error {
	one, err := t.prepare(changes)
	if err != nil || len(one.Files) == 0 {
		return err
	}
	if err := t.journal.write(one); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	t.records = append(t.records, one)
	checkpoint()
	for _, dir := range one.Folders {
		if err := os.Mkdir(absolute(t.root, dir), 0o755); err != nil { //nolint:gosec // source code, which others may read
			return err
		}
		checkpoint()
	}
	if err := t.stage(one.Files); err != nil {
		return err
	}
	for _, file := range one.Files {
		if err := t.rename(file); err != nil {
			return fmt.Errorf("writing %s: %w", file.Path, err)
		}
		checkpoint()
	}
	t.removeEmptyParents(one.Files)
	checkpoint()
	return nil
}

// Commit makes the changes last.
func (t *Transaction) Commit() error {
	if err := t.journal.end(); err != nil {
		return fmt.Errorf("removing the journal: %w", err)
	}
	return nil
}

// Rollback takes back whatever was done. If that is not possible now, the next one who writes here tries again.
func (t *Transaction) Rollback() error {
	_, edited, err := undo(beyond(t.root), t.records)
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrNotTakenBack, err), t.journal.file.Close())
	}
	if len(edited) > 0 {
		err = fmt.Errorf("%w, because these files have been edited since: %s", ErrNotTakenBack, strings.Join(edited, ", "))
	}
	err = errors.Join(err, t.journal.end())
	removeEmpty(t.made)
	return err
}

// prepare says what has to be done. It refuses to write over what is not as it was when the changes were thought of.
func (t *Transaction) prepare(changes []Change) (record, error) {
	var one record
	for _, change := range changes {
		target, err := resolve(absolute(t.root, change.Path))
		if err != nil {
			return one, fmt.Errorf("writing %s: %w", change.Path, err)
		}
		folders, err := missingFolders(filepath.Dir(target))
		if err != nil {
			return one, fmt.Errorf("writing %s: %w", change.Path, err)
		}
		now, err := content(target)
		if err != nil {
			return one, fmt.Errorf("writing %s: %w", change.Path, err)
		}
		file := entry{Before: change.Before, Mode: change.Mode}
		if !change.Remove {
			file.content = append([]byte{}, change.Content...)
		}
		if !same(now, change.Before) {
			if same(now, file.content) {
				continue // it is already done
			}
			return one, fmt.Errorf("writing %s: the file has changed since it was read", change.Path)
		}
		file.After = hashOf(file.content)
		for name, path := range map[*string]string{&file.Path: target, &file.Temporary: temporaryFor(target)} {
			if *name, err = filepath.Rel(t.root, path); err != nil {
				return one, fmt.Errorf("writing %s: %w", change.Path, err)
			}
		}
		for _, dir := range folders {
			if dir, err = filepath.Rel(t.root, dir); err != nil {
				return one, fmt.Errorf("writing %s: %w", change.Path, err)
			}
			if !slices.Contains(one.Folders, dir) {
				one.Folders = append(one.Folders, dir)
			}
		}
		one.Files = append(one.Files, file)
	}
	return one, nil
}

// randomLength is enough for unpredictable names.
const randomLength = 12

// temporaryFor is a name beside the target that neither go nor the search for packages takes for source.
func temporaryFor(target string) string {
	return filepath.Join(filepath.Dir(target), ".opdock-"+rand.Text()[:randomLength]+".tmp")
}

// isTemporaryFor reports whether a name is one that temporaryFor gives.
func isTemporaryFor(name, target string) bool {
	random, ours := strings.CutPrefix(filepath.Base(name), ".opdock-")
	random, temporary := strings.CutSuffix(random, ".tmp")
	return ours && temporary && len(random) == randomLength && filepath.Dir(name) == filepath.Dir(target)
}

// stage puts the new content beside the files. It returns when that is on the disk, so that not even a power cut leaves
// a file that is neither old nor new. Files that will be removed are staged as well: it shows whether that is possible.
func (t *Transaction) stage(files []entry) error {
	const together = 32 // the file system writes them at once
	var disk errgroup.Group
	disk.SetLimit(together)
	for _, one := range files {
		file, err := createTemporary(beyond(t.root), one.Temporary, one.content, one.Mode)
		if err != nil {
			return errors.Join(fmt.Errorf("writing %s: %w", one.Path, err), disk.Wait())
		}
		disk.Go(func() error { return errors.Join(file.Sync(), file.Close()) })
		checkpoint()
	}
	return disk.Wait()
}

func (t *Transaction) rename(file entry) error {
	target, temporary := absolute(t.root, file.Path), absolute(t.root, file.Temporary)
	if file.After != "" {
		return os.Rename(temporary, target)
	}
	if err := os.Remove(temporary); err != nil { // it has shown what it was for, and would keep the folder from being empty
		return err
	}
	return os.Remove(target)
}

// removeEmpty removes folders that were made, innermost first.
func removeEmpty(folders []string) {
	for _, dir := range slices.Backward(folders) {
		_ = os.Remove(dir) // one that is not empty stays
	}
}

// removeEmptyParents removes the folders that have lost their last file.
func (t *Transaction) removeEmptyParents(files []entry) {
	for _, one := range files {
		if one.After != "" {
			continue
		}
		for dir := filepath.Dir(one.Path); filepath.IsLocal(dir) && dir != "."; dir = filepath.Dir(dir) {
			if os.Remove(absolute(t.root, dir)) != nil {
				break // it is not empty
			}
		}
	}
}
