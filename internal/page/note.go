// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opdock/opdock/internal/filelock"
)

// FileName is the file in a cluster's state folder with the address of the page. If several pages are served, the
// others have names with a suffix before the extension.
const FileName = "page.json"

const fileNames = "page*.json"

// File is its content.
type File struct {
	Address string `json:"address"`
	// Project is the folder of the project that the page is about; empty if it is about none.
	Project string    `json:"project,omitempty"`
	Started time.Time `json:"started"`
}

// Note is a file with the address of a page. It is locked while its process runs, so others can trust it: a killed
// process leaves the file, but not the lock.
type Note struct {
	path string
	file *os.File
}

// Announce writes a note to a folder. It keeps the notes of other running pages, and removes those of killed
// processes.
func Announce(dir string, content File) (*Note, error) {
	content.Started = time.Now()
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("recording the address of the page: %w", err)
	}
	removeDead(dir)
	n := &Note{path: filepath.Join(dir, FileName)}
	if _, alive, err := readNote(n.path); err == nil && alive {
		n.path = filepath.Join(dir, fmt.Sprintf("page-%d.json", os.Getpid()))
	}
	n.file, err = os.CreateTemp(dir, FileName+".*") // readable by its owner alone
	if err != nil {
		return nil, fmt.Errorf("recording the address of the page: %w", err)
	}
	// It gets its name only once it is complete and locked, so other processes neither read half of
	// it nor take it for a dead one.
	_, err = n.file.Write(append(data, '\n'))
	if err == nil {
		err = filelock.Exclusive(n.file)
	}
	if err == nil {
		err = os.Rename(n.file.Name(), n.path)
	}
	if err != nil {
		n.file.Close()
		os.Remove(n.file.Name())
		return nil, fmt.Errorf("recording the address of the page: %w", err)
	}
	return n, nil
}

// removeDead removes notes with process IDs in their names, which no other page would replace. Errors do no harm.
func removeDead(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, "page-*.json"))
	for _, path := range paths {
		if _, alive, err := readNote(path); err == nil && !alive {
			_ = os.Remove(path)
		}
	}
}

// Close takes the note back.
func (n *Note) Close() error {
	defer n.file.Close()
	ours, err := n.file.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(n.path); err == nil && os.SameFile(ours, there) {
			err = os.Remove(n.path)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the recorded address of the page: %w", err)
	}
	return nil
}

// Find returns the running pages from the notes in a folder, the latest first. Left is whether there are notes of
// killed processes.
func Find(dir string) (served []File, left bool, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, fileNames))
	if err != nil {
		return nil, false, fmt.Errorf("finding pages: %w", err)
	}
	for _, path := range paths {
		content, alive, err := readNote(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has just ended
		case err != nil:
			return nil, false, fmt.Errorf("reading the recorded address of the page: %w", err)
		case alive:
			served = append(served, content)
		default:
			left = true
		}
	}
	slices.SortFunc(served, func(a, b File) int { return b.Started.Compare(a.Started) })
	return served, left, nil
}

// readNote reads a note and reports whether its process is running.
func readNote(path string) (content File, alive bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return content, false, err
	}
	defer file.Close()
	switch err := filelock.Shared(file); {
	case errors.Is(err, filelock.ErrHeld):
	case err != nil:
		return content, false, fmt.Errorf("looking at %s: %w", path, err)
	default:
		return content, false, nil
	}
	const enough = 64 << 10
	if err := json.NewDecoder(io.LimitReader(file, enough)).Decode(&content); err != nil {
		return content, true, fmt.Errorf("%s: %w", path, err)
	}
	return content, true, nil
}
