// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/opdock/opdock/internal/cachedir"
)

const (
	binaryName = "opdock-controlplane"
	binaryEnv  = "OPDOCK_CONTROLPLANE"
)

// FindBinary returns the absolute path of the control plane binary. It searches, in this order:
// $OPDOCK_CONTROLPLANE, the folder of the running executable, the folder of the opdock on PATH, and
// earlier builds in the user's cache folder. If there is none, the error is a [*NoBinaryError].
//
// If $OPDOCK_CONTROLPLANE is set, the file must exist: using another binary would hide the mistake.
func FindBinary() (string, error) {
	if path := os.Getenv(binaryEnv); path != "" {
		if err := checkExecutable(path); err != nil {
			return "", fmt.Errorf("%s: %w", binaryEnv, err)
		}
		return absolute(path), nil
	}
	looked := []string{"$" + binaryEnv}
	for _, path := range besideExecutables() {
		if checkExecutable(path) == nil {
			return path, nil
		}
		looked = append(looked, path)
	}
	cached, err := cachedBinary(context.Background())
	if err != nil {
		// There is no cache folder, but the error still lists the other places.
		looked = append(looked, fmt.Sprintf("the cache directory: %v", err))
		return "", &NoBinaryError{Looked: looked}
	}
	if cached.usable() {
		return cached.path, nil
	}
	return "", &NoBinaryError{Looked: append(looked, cached.path)}
}

// EnsureBinary returns what [FindBinary] finds. If there is none, it builds the control plane with
// [BuildBinary] to where FindBinary finds it from then on.
func EnsureBinary(ctx context.Context, progress func(BuildProgress)) (string, error) {
	path, err := FindBinary()
	var none *NoBinaryError
	if !errors.As(err, &none) {
		return path, err
	}
	cached, err := cachedBinary(ctx)
	if err != nil {
		return "", err
	}
	if err := cached.build(ctx, progress); err != nil {
		return "", err
	}
	return cached.path, nil
}

// besideExecutables also follows symbolic links, because a package manager may link only opdock into
// a bin folder.
func besideExecutables() []string {
	var paths []string
	add := func(executable string) {
		executable = absolute(executable)
		candidates := []string{executable}
		if target, err := filepath.EvalSymlinks(executable); err == nil {
			candidates = append(candidates, target)
		}
		for _, c := range candidates {
			if path := filepath.Join(filepath.Dir(c), binaryName); !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	if executable, err := os.Executable(); err == nil {
		add(executable)
	}
	if opdock, err := exec.LookPath("opdock"); err == nil {
		add(opdock)
	}
	return paths
}

func checkExecutable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("file %s does not exist", path)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory; use the path of the %s in it", path, binaryName)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable; run %q", path, "chmod +x "+path)
	}
	return nil
}

// builtBinary is a control plane in the cache folder, there or not there yet.
type builtBinary struct {
	path string
	from *source
	// sum is the checksum of the source at the start of a build, and sumFile the file that stores it at
	// the end. Both are empty for a released version, whose source does not change.
	sum, sumFile string
}

func cachedBinary(ctx context.Context) (*builtBinary, error) {
	cache, err := cachedir.Dir(os.Getenv)
	if err != nil {
		return nil, err
	}
	from, err := findSource(ctx)
	if err != nil {
		return nil, err
	}
	b := &builtBinary{path: filepath.Join(cache, "controlplane", from.key(), binaryName), from: from}
	if from.checkout != "" {
		if b.sum, err = from.sum(); err != nil {
			return nil, err
		}
		b.sumFile = b.path + ".source"
	}
	return b, nil
}

// usable reports whether the binary exists and was built from the current source.
func (b *builtBinary) usable() bool {
	if checkExecutable(b.path) != nil {
		return false
	}
	if b.sum == "" {
		return true
	}
	built, err := os.ReadFile(b.sumFile)
	return err == nil && string(built) == b.sum
}

func (b *builtBinary) build(ctx context.Context, progress func(BuildProgress)) error {
	return buildOnce(ctx, b.from, b.path, progress, b.usable, func() error {
		if b.sum == "" {
			return nil
		}
		return os.WriteFile(b.sumFile, []byte(b.sum), 0o600)
	})
}
