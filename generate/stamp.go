// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/filewrite"
)

// A stamp proves that a run would change nothing: it holds hashes of everything that the last successful run depended on
// and of everything that it wrote. Files are always read and hashed, never judged by their times, which can be wrong in
// both directions; reading the files of a module takes milliseconds. Code from elsewhere is pinned by go.mod and go.sum.

// stampFormat is part of every stamp; a new value invalidates older stamps.
const stampFormat = 1

// stamp describes a run.
type stamp struct {
	// Question is a hash of the input: settings, tools, and the files of the module that are not generated.
	Question string `json:"question"`
	// Inputs are hashes of local files that discover does not see, because they are outside of the paths or of the module.
	Inputs map[string]string `json:"inputs"`
	// Outputs are hashes of the generated files, by absolute path.
	Outputs map[string]string `json:"outputs"`
	// Folders lists the files in the folders of generators, to detect new files in them.
	Folders map[string][]string `json:"folders"`
}

// stampStore is where the stamps of one module are.
type stampStore struct {
	file string // empty if there is no place for it
}

func newStampStore(o Options, m module) stampStore {
	dir := o.CacheDir
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return stampStore{} // without a home there is no memory; all work is done each time
		}
		dir = filepath.Join(user, "opdock", "generate")
	}
	return stampStore{file: filepath.Join(dir, hashOf([]byte(m.dir))+".json")}
}

// load returns the last stamp, or nil. A stamp that cannot be read proves nothing.
func (s stampStore) load() *stamp {
	content, err := os.ReadFile(s.file)
	if err != nil {
		return nil
	}
	var last stamp
	if json.Unmarshal(content, &last) != nil {
		return nil
	}
	return &last
}

// save keeps a stamp. Without it the next run is slower, which is no reason for this one to fail.
func (s stampStore) save(next *stamp) {
	if s.file == "" || next == nil {
		return
	}
	content, err := json.Marshal(next)
	if err != nil {
		return
	}
	if os.MkdirAll(filepath.Dir(s.file), 0o700) != nil {
		return
	}
	_ = filewrite.Replace(s.file, content, 0o600)
}

// newStamp is nil if something cannot be hashed, such as a file that was removed meanwhile.
func newStamp(q *question, inputs map[string]string, outputs map[string][]byte, folders []string) *stamp {
	next := &stamp{Question: q.hash(), Inputs: map[string]string{}, Outputs: map[string]string{}, Folders: map[string][]string{}}
	for file, hash := range inputs {
		if _, seen := q.found.files[q.module.relative(file)]; seen {
			continue
		}
		next.Inputs[file] = hash
		dir := filepath.Dir(file) + string(filepath.Separator)
		names, err := hashInput(dir)
		if err != nil {
			return nil
		}
		next.Inputs[dir] = names
	}
	for file, content := range outputs {
		next.Outputs[file] = hashOf(content)
	}
	for _, dir := range folders {
		names, err := filesIn(q.module.absolute(dir))
		if err != nil {
			return nil
		}
		next.Folders[q.module.absolute(dir)] = names
	}
	return next
}

// answers reports whether everything is as it was when the stamp was made.
func (s *stamp) answers(q *question) bool {
	if s == nil || s.Question != q.hash() {
		return false
	}
	for _, file := range q.found.files {
		// A generated file that the last run did not make could be a leftover.
		if _, known := s.Outputs[q.module.absolute(file.path)]; file.generator != "" && !known {
			return false
		}
	}
	for dir, names := range s.Folders {
		now, err := filesIn(dir)
		if err != nil || !slices.Equal(now, names) {
			return false
		}
	}
	return unchanged(s.Inputs) && unchanged(s.Outputs)
}

func unchanged(hashes map[string]string) bool {
	for file, hash := range hashes {
		if now, err := hashInput(file); err != nil || now != hash {
			return false
		}
	}
	return true
}

// hashInput hashes a file or, if the name ends with a separator, the names of the Go files in a folder.
func hashInput(name string) (string, error) {
	if !strings.HasSuffix(name, string(filepath.Separator)) {
		return hashFile(name)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return "", err
	}
	var names []string
	for _, entry := range entries {
		if isSource(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return hashOf([]byte(strings.Join(names, "\n"))), nil
}

func hashFile(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return hashOf(content), nil
}

// filesIn lists all files below a folder, none if there is no folder.
func filesIn(dir string) ([]string, error) {
	names := map[string]bool{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !entry.IsDir() {
			names[file] = true
		}
		return err
	})
	return slices.Sorted(maps.Keys(names)), err
}

// localFiles returns hashes of the files of packages that are neither in the standard library nor in the module
// cache, which do not change.
func (l *loaded) localFiles() map[string]string {
	files := map[string]string{}
	for _, p := range l.order {
		maps.Copy(files, p.hashes)
	}
	return files
}

// local reports whether the files of the package can change without a change of go.mod or go.sum.
func (p *loadedPackage) local() bool {
	if p.listed.Standard || p.listed.Module == nil {
		return false
	}
	module := p.listed.Module
	return p.own() || module.Replace != nil && module.Replace.Version == "" || !within(moduleCache(), p.listed.Dir)
}
