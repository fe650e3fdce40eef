// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// question is everything that a run depends on, except for the files that only loading finds.
type question struct {
	module module
	found  *discovery
	parts  []string
}

// goVariables are what changes the answers of go list.
var goVariables = []string{
	"GOFLAGS", "GOOS", "GOARCH", "CGO_ENABLED", "GOWORK", "GOTOOLCHAIN", "GOEXPERIMENT", "GO111MODULE", "GOROOT", "GOPATH", "GOMODCACHE",
}

func newQuestion(m module, config *Config, found *discovery, o Options, now time.Time) (*question, error) {
	q := &question{module: m, found: found}
	settings, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("creating a stamp: %w", err)
	}
	own, err := executableID()
	if err != nil {
		return nil, fmt.Errorf("creating a stamp: %w", err)
	}
	// Headers name the year.
	q.add("format", stampFormat, own, now.UTC().Year(), m.dir, string(settings), o.Only, o.Paths)
	q.add("Makefile", config.pathsInMakefile, LeftOut(m.dir)) // what it selects is no setting
	for _, name := range goVariables {
		q.add(name, os.Getenv(name))
	}
	for _, tool := range []string{"go", "gofmt"} {
		q.add(tool, commandID(tool))
	}
	for _, file := range q.settingFiles(config) {
		hash, err := hashFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("creating a stamp: %w", err)
		}
		q.add(file, hash)
	}
	for _, name := range slices.Sorted(maps.Keys(found.files)) {
		if file := found.files[name]; file.generator == "" {
			q.add(name, file.hash)
		}
	}
	return q, nil
}

func (q *question) add(values ...any) { q.parts = append(q.parts, fmt.Sprintf("%q", values)) }

func (q *question) hash() string { return hashOf([]byte(strings.Join(q.parts, "\n"))) }

// settingFiles determine which code is loaded, or are part of the output. Files that do not exist count, too.
func (q *question) settingFiles(config *Config) []string {
	files := []string{
		filepath.Join(q.module.dir, "go.mod"), filepath.Join(q.module.dir, "go.sum"), filepath.Join(q.module.dir, "vendor", "modules.txt"),
	}
	for dir := q.module.dir; ; dir = filepath.Dir(dir) {
		files = append(files, filepath.Join(dir, "go.work"), filepath.Join(dir, "go.work.sum"))
		if filepath.Dir(dir) == dir {
			break
		}
	}
	if workspace := os.Getenv("GOWORK"); filepath.IsAbs(workspace) {
		files = append(files, workspace, workspace+".sum")
	}
	for _, file := range config.textFiles() {
		files = append(files, q.module.absolute(file))
	}
	if settings, err := os.UserConfigDir(); err == nil {
		files = append(files, filepath.Join(settings, "go", "env"))
	}
	return files
}

// commandID identifies the version of a command without running it.
func commandID(name string) string {
	file, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	return fmt.Sprint(file, info.Size(), info.ModTime().UnixNano())
}

// executableID identifies the build of this program: by the build ID that the linker writes near the start of the
// file, or else by the whole file. The version is not enough, because all builds of a work tree have the same.
func executableID() (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	start := make([]byte, 64<<10)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	if id := buildID(start[:n]); id != "" {
		return id, nil
	}
	return hashFile(name)
}

// buildID finds the build ID at the start of a program: as text, or in a note of an ELF file, where it is the only one if
// another linker than Go's has put the program together.
func buildID(start []byte) string {
	if _, after, found := bytes.Cut(start, []byte("\xff Go build ID: \"")); found {
		if id, _, ended := bytes.Cut(after, []byte("\"\n \xff")); ended {
			return string(id)
		}
	}
	const noteOfGo = "\x04\x00\x00\x00Go\x00\x00" // the type of the note, and whose it is; before them is the size of its text
	before, after, found := bytes.Cut(start, []byte(noteOfGo))
	if !found || len(before) < 4 {
		return ""
	}
	size := binary.LittleEndian.Uint32(before[len(before)-4:])
	if uint64(size) > uint64(len(after)) {
		return ""
	}
	return string(after[:size])
}

// moduleCache is where go keeps the modules it has downloaded.
func moduleCache() string {
	if dir := os.Getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	return filepath.Join(filepath.SplitList(build.Default.GOPATH)[0], "pkg", "mod")
}
