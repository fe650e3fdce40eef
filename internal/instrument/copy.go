// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed hook/hook.go
var hookSource []byte

// patcherSource is part of the fingerprint: a copy that another version of these files has made is not used.
//
//go:embed copy.go patch.go hook/hook.go
var patcherSource embed.FS

// copyPatched creates a patched copy of controller-runtime in a folder below dir, or finds an existing one,
// and returns its path. A copy is complete or does not exist.
func copyPatched(from, version, dir string) (string, error) {
	mark, err := fingerprint(from)
	if err != nil {
		return "", fmt.Errorf("reading controller-runtime: %w", err)
	}
	to := filepath.Join(dir, "controller-runtime@"+version+"-"+mark)
	if _, err := os.Stat(to); err == nil {
		return to, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("creating a directory for a copy of controller-runtime: %w", err)
	}
	partial, err := os.MkdirTemp(dir, ".copy-")
	if err != nil {
		return "", fmt.Errorf("creating a directory for a copy of controller-runtime: %w", err)
	}
	defer os.RemoveAll(partial)
	if err := copySources(from, partial); err != nil {
		return "", fmt.Errorf("copying controller-runtime: %w", err)
	}
	if err := patchAll(partial); err != nil {
		return "", &UnsupportedError{Reason: fmt.Sprintf("controller-runtime %s cannot be patched: %v", version, err)}
	}
	if err := os.Rename(partial, to); err != nil {
		if _, there := os.Stat(to); there == nil {
			return to, nil // another process was faster
		}
		return "", fmt.Errorf("keeping a copy of controller-runtime: %w", err)
	}
	return to, nil
}

// fingerprint identifies a copy by its source and by the patching code. The content counts and not the
// version, because a project may replace controller-runtime with a folder that is being edited.
func fingerprint(from string) (string, error) {
	sum := sha256.New()
	add := func(path string, text []byte) error {
		_, err := fmt.Fprintf(sum, "%s\x00%d\x00%s", path, len(text), text)
		return err
	}
	for _, dir := range []fs.FS{patcherSource, os.DirFS(from)} {
		if err := eachSource(dir, add); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

func copySources(from, to string) error {
	return eachSource(os.DirFS(from), func(path string, text []byte) error {
		target := filepath.Join(to, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
}

// eachSource visits the files that a build of a module needs: no tests, and no files of other programs.
func eachSource(dir fs.FS, do func(path string, text []byte) error) error {
	return fs.WalkDir(dir, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || path == "examples" || path == "tools"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(dir, path)
		if err != nil {
			return err
		}
		return do(path, text)
	})
}

// patchAll adds the hook to a copy.
func patchAll(dir string) error {
	patched := 0
	for _, one := range patches {
		err := patchFile(dir, one.file, one.edit)
		if errors.Is(err, fs.ErrNotExist) && one.instead != "" {
			err = patchFile(dir, one.instead, one.edit)
		}
		if err != nil && !one.optional {
			return err
		}
		if err == nil {
			patched++
		}
	}
	if patched == 0 {
		return errors.New("nothing could be patched")
	}
	path := filepath.Join(dir, filepath.FromSlash(hookFile))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, hookSource, 0o600)
}

func patchFile(dir, name string, edit func(*source) error) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	patched, err := patch(name, text, edit)
	if err != nil {
		return err
	}
	return os.WriteFile(path, patched, 0o600)
}
