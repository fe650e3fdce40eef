// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quietTime is how long nothing may happen before saves count as one change. Editors write a file in several steps and
// formatters write it once more, but all of that takes only some milliseconds.
const quietTime = 40 * time.Millisecond

// watcher reports which files may have changed. It does not read them.
type watcher struct {
	notify *fsnotify.Watcher
	roots  []string
	// changed receives sorted absolute paths. Changes are kept until they are received.
	changed chan []string
	// failed receives what keeps the watcher from seeing everything.
	failed chan error
}

// watch begins to watch the folders and everything below that can matter. It ends with the context.
func watch(ctx context.Context, roots []string) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching files: %w", explainWatch(err))
	}
	w := &watcher{notify: notify, roots: roots, changed: make(chan []string), failed: make(chan error, 1)}
	for _, root := range roots {
		if _, err := w.add(root); err != nil {
			notify.Close()
			return nil, err
		}
	}
	go w.run(ctx)
	return w, nil
}

// add watches a folder with all below and returns the files there are.
func (w *watcher) add(dir string) (files []string, err error) {
	err = walkProject(w.roots, dir, func(path string, entry fs.DirEntry) error {
		if !entry.IsDir() {
			files = append(files, path)
			return nil
		}
		if err := w.notify.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("watching %s: %w", path, explainWatch(err))
		}
		return nil
	})
	return files, err
}

func explainWatch(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w; the limit of inotify watches is reached: raise it with sysctl fs.inotify.max_user_watches=524288", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w; too many files are watched: raise the limit with sysctl fs.inotify.max_user_instances=512 or ulimit -n", err)
	default:
		return err
	}
}

func (w *watcher) run(ctx context.Context) {
	defer w.notify.Close()
	pending := map[string]bool{}
	quiet := time.NewTimer(quietTime)
	quiet.Stop()
	var (
		deliver chan []string // nil until it has been quiet
		batch   []string      // the paths to deliver, sorted once and not at every event
	)
	for {
		select {
		case <-ctx.Done():
			return
		case event, more := <-w.notify.Events:
			if !more {
				return
			}
			if paths := w.concerned(event); len(paths) > 0 {
				for _, path := range paths {
					pending[path] = true
				}
				deliver = nil
				quiet.Reset(quietTime)
			}
		case err, more := <-w.notify.Errors:
			if !more {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				// Events were lost, so everything may have changed.
				for _, root := range w.roots {
					all, _ := w.add(root)
					for _, path := range all {
						pending[path] = true
					}
				}
				deliver = nil
				quiet.Reset(quietTime)
				continue
			}
			w.fail(err)
		case <-quiet.C:
			batch, deliver = slices.Sorted(maps.Keys(pending)), w.changed
		case deliver <- batch:
			pending, batch, deliver = map[string]bool{}, nil, nil
		}
	}
}

// concerned returns the files that an event is about, and watches folders that are new.
func (w *watcher) concerned(event fsnotify.Event) []string {
	if event.Op == fsnotify.Chmod || ignoredFile(filepath.Base(event.Name)) {
		return nil
	}
	info, err := os.Lstat(event.Name)
	if err != nil || !info.IsDir() {
		return []string{event.Name}
	}
	if event.Has(fsnotify.Create) && !ignoredDir(w.roots, event.Name) {
		all, err := w.add(event.Name)
		if err != nil {
			w.fail(err)
		}
		return all
	}
	return nil
}

func (w *watcher) fail(err error) {
	select {
	case w.failed <- err:
	default: // one is enough
	}
}

// walkProject visits the files and folders below dir that can matter.
func walkProject(roots []string, dir string, visit func(path string, entry fs.DirEntry) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed in the meantime
		case err != nil:
			return fmt.Errorf("reading the project: %w", err)
		case entry.IsDir() && ignoredDir(roots, path):
			return fs.SkipDir
		case !entry.IsDir() && ignoredFile(entry.Name()):
			return nil
		default:
			return visit(path, entry)
		}
	})
}

// ignoredDir reports whether to ignore a folder: it contains built or downloaded files, belongs to another module, or
// is ignored by go as well.
func ignoredDir(roots []string, dir string) bool {
	if slices.Contains(roots, dir) {
		return false
	}
	name := filepath.Base(dir)
	switch {
	case strings.HasPrefix(name, "."), strings.HasPrefix(name, "_"):
		return true
	case name == "vendor", name == "testdata", name == "node_modules":
		return true
	case (name == "bin" || name == "dist") && slices.Contains(roots, filepath.Dir(dir)):
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// ignoredFile reports whether a file is a test or a temporary file of an editor.
func ignoredFile(name string) bool {
	switch {
	case strings.HasPrefix(name, "."), strings.HasPrefix(name, "#"): // .x.swp, .#x, .goutputstream-X, #x#
		return true
	case strings.HasSuffix(name, "~"), strings.HasSuffix(name, ".tmp"), strings.HasSuffix(name, ".swp"),
		strings.HasSuffix(name, ".orig"), strings.HasSuffix(name, ".bak"):
		return true
	case strings.Contains(name, "___jb_"): // JetBrains writes beside the file
		return true
	case name == "4913": // vim tries whether it may write
		return true
	}
	return strings.HasSuffix(name, "_test.go")
}
