// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/opdock/opdock/internal/filewrite"
)

// tree is a project with changes that are not on disk yet.
type tree struct {
	dir   string
	files map[string]*treeFile // files that were read, by path relative to the folder, with slashes
}

type treeFile struct {
	before []byte // nil if it is not there
	now    []byte // nil if it should not be there; lines end as in Unix
	mode   fs.FileMode
	// windows means that all lines of the file end with CRLF, as git can check them out. They are written in the same
	// way.
	windows bool
}

func newTree(dir string) *tree { return &tree{dir: dir, files: map[string]*treeFile{}} }

func (t *tree) file(path string) (*treeFile, error) {
	if known := t.files[path]; known != nil {
		return known, nil
	}
	file := &treeFile{mode: 0o644}
	name := filepath.Join(t.dir, filepath.FromSlash(path))
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	default:
		if file.before, err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if file.before == nil {
			file.before = []byte{}
		}
		file.mode, file.now = info.Mode().Perm(), file.before
		if lines := bytes.Count(file.before, []byte("\n")); lines > 0 && lines == bytes.Count(file.before, []byte("\r\n")) {
			file.windows, file.now = true, bytes.ReplaceAll(file.before, []byte("\r\n"), []byte("\n"))
		}
	}
	t.files[path] = file
	return file, nil
}

// read returns the planned content of a file; nil if it will not exist.
func (t *tree) read(path string) ([]byte, error) {
	file, err := t.file(path)
	if err != nil {
		return nil, err
	}
	return file.now, nil
}

func (t *tree) write(path string, content []byte) error {
	file, err := t.file(path)
	if err != nil {
		return err
	}
	if content == nil {
		content = []byte{}
	}
	file.now = content
	return nil
}

func (t *tree) remove(path string) error {
	file, err := t.file(path)
	if err != nil {
		return err
	}
	file.now = nil
	return nil
}

// changes returns the changes to make on disk.
func (t *tree) changes() []filewrite.Change {
	var changes []filewrite.Change
	for _, path := range slices.Sorted(maps.Keys(t.files)) {
		file := t.files[path]
		content := file.now
		if file.windows {
			content = bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n"))
		}
		if (file.now == nil) == (file.before == nil) && bytes.Equal(content, file.before) {
			continue
		}
		changes = append(changes, filewrite.Change{Path: path, Content: content, Before: file.before, Mode: file.mode, Remove: file.now == nil})
	}
	return changes
}
