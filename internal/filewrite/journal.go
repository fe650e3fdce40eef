// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package filewrite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/opdock/opdock/internal/filelock"
)

// JournalName is the file, in the folder of the project, that is there while files are written.
const JournalName = ".opdock-journal"

// patience is how long another process may hold the journal, which is as long as it generates, and retry is how often we look.
const (
	patience = 30 * time.Second
	retry    = 20 * time.Millisecond
)

// record is a line of the journal: changes that are about to be made.
type record struct {
	// Folders will be made, outermost first.
	Folders []string `json:"folders,omitempty"`
	Files   []entry  `json:"files"`
}

// entry is one file of a record. Paths are relative to the root, so that a project can be moved.
type entry struct {
	Path      string      `json:"path"`
	Temporary string      `json:"temporary"`
	Before    []byte      `json:"before"`          // null if there was no file
	After     string      `json:"after,omitempty"` // hash of the new content; empty if there will be no file
	Mode      fs.FileMode `json:"mode"`

	content []byte // what will be written
}

// hashOf is empty if there is no file.
func hashOf(content []byte) string {
	if content == nil {
		return ""
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// journal is held by one process at a time; the system lets go of it when the process ends, however that ends.
type journal struct {
	file *os.File
}

func openJournal(ctx context.Context, root string) (*journal, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("another opdock has been writing to %s for %s", root, patience))
	defer cancel()
	for {
		file, err := tryJournal(filepath.Join(root, JournalName))
		if err != nil || file != nil {
			return &journal{file: file}, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(retry):
		}
	}
}

// tryJournal returns nil if another process holds the journal.
func tryJournal(name string) (*os.File, error) {
	// A link may have come with the project, and would redirect the write to any file.
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = filelock.Exclusive(file)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, file.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", name, err), file.Close())
	}
	held, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	// The previous holder has removed it; another one may exist by now.
	if now, err := os.Stat(name); err != nil || !os.SameFile(held, now) {
		return nil, file.Close()
	}
	return file, nil
}

// read returns what is written down. A line that is not complete was never acted upon.
func (j *journal) read() ([]record, error) {
	all, err := io.ReadAll(j.file)
	if err != nil {
		return nil, err
	}
	var records []record
	for line := range bytes.Lines(all) {
		var one record
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &one) != nil {
			break
		}
		records = append(records, one)
	}
	return records, nil
}

// write returns when the record is on the disk.
func (j *journal) write(one record) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return j.file.Sync()
}

// end removes the journal and lets others have theirs.
func (j *journal) end() error {
	return errors.Join(os.Remove(j.file.Name()), j.file.Close())
}
