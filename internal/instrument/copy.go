// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"crypto/sha256"
	_ "embed"
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

// formatVersion changes when the same files are patched in another way.
const formatVersion = "1"

// copyPatched makes a patched copy of controller-runtime in a folder below dir, or finds the one that is there, and returns its
// path. A copy is complete or not there.
func copyPatched(from, version, dir string) (string, error) {
	to := filepath.Join(dir, "controller-runtime@"+version+"-"+fingerprint(from))
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
		return "", &UnsupportedError{Reason: fmt.Sprintf("controller-runtime %s is not one that can be patched: %v", version, err)}
	}
	if err := os.Rename(partial, to); err != nil {
		if _, there := os.Stat(to); there == nil {
			return to, nil // another process was faster
		}
		return "", fmt.Errorf("keeping a copy of controller-runtime: %w", err)
	}
	return to, nil
}

// fingerprint tells copies apart: by what is added, and by where they come from.
func fingerprint(from string) string {
	sum := sha256.New()
	sum.Write([]byte(formatVersion + "\x00" + from + "\x00"))
	sum.Write(hookSource)
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// copySources copies what is needed to build with a module: no tests, and no files of programs that lie beside the packages.
func copySources(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		name := entry.Name()
		switch {
		case entry.IsDir() && relative != "." && (strings.HasPrefix(name, ".") || name == "testdata" || relative == "examples" || relative == "tools"):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o600)
	})
}

// patchAll adds the hook to a copy.
func patchAll(dir string) error {
	patched := 0
	for _, one := range patches {
		path := filepath.Join(dir, filepath.FromSlash(one.file))
		text, err := os.ReadFile(path)
		if err == nil {
			text, err = patch(one.file, text, one.edit)
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
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
