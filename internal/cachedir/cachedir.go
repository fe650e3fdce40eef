// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cachedir finds the directory for files that can be recreated: programs built from source, envtest's
// assets, and patched copies of controller-runtime.
package cachedir

import (
	"errors"
	"path/filepath"
	"runtime"
)

// Dir returns Opdock's cache directory in an environment. It does not create it.
func Dir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "opdock"), nil
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", errors.New("finding the cache directory: HOME is not set; set XDG_CACHE_HOME to an absolute path")
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Caches", "opdock"), nil
	}
	return filepath.Join(home, ".cache", "opdock"), nil
}
