// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/opdock/opdock/internal/filelock"
)

// savingPrefix is how the names of directories begin in which a snapshot is written before it gets its name.
const savingPrefix = ".opdock-saving-"

// Save writes all objects of the cluster, at one revision, to a file that only its owner can read. An existing snapshot is
// replaced once the new one is complete; any other file is refused. The cluster keeps running meanwhile. To start a
// cluster from the file, set [Options.From].
func (c *Cluster) Save(ctx context.Context, path string) (Snapshot, error) {
	return c.save(ctx, absolute(path), replaceFile)
}

// SaveNew is like Save, but does not replace a file. If there is one, errors.Is(err, fs.ErrExist) is true. Of several
// calls with the same path, one succeeds.
func (c *Cluster) SaveNew(ctx context.Context, path string) (Snapshot, error) {
	path = absolute(path)
	if _, err := os.Lstat(path); err == nil {
		// Known before the work is done.
		if err := checkReplaceable(path); err != nil {
			return Snapshot{}, fmt.Errorf("saving %s: %w", c.title(), err)
		}
		return Snapshot{}, fmt.Errorf("saving %s to %s: %w", c.title(), path, fs.ErrExist)
	}
	return c.save(ctx, path, createFile)
}

func (c *Cluster) save(ctx context.Context, path string, publish func(from, to string) error) (Snapshot, error) {
	fail := func(err error) (Snapshot, error) { return Snapshot{}, fmt.Errorf("saving %s: %w", c.title(), err) }
	if err := c.checkRunning(); err != nil {
		return fail(err)
	}
	if err := checkReplaceable(path); err != nil {
		return fail(err)
	}
	binary := c.binary
	if binary == "" {
		var err error
		if binary, err = EnsureBinary(ctx, func(BuildProgress) {}); err != nil {
			return Snapshot{}, err
		}
	}
	dir := filepath.Dir(path)
	if dir == snapshotsDir() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Snapshot{}, fmt.Errorf("creating the directory of snapshots: %w; set %s to use another location", err, homeEnv)
		}
	}
	sweepSaves(dir)
	work, release, err := makeSaveDir(dir)
	if err != nil {
		return fail(err)
	}
	defer release()
	made := filepath.Join(work, filepath.Base(path))
	if err := runSave(ctx, binary, c.dir, made, c.name); err != nil {
		return fail(explainSave(err, work, dir))
	}
	if err := publish(made, path); err != nil {
		return fail(err)
	}
	return ReadSnapshot(path)
}

// checkReplaceable refuses to replace what is not a snapshot. An empty file is nothing to lose: programs create one to
// reserve a name.
func checkReplaceable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name a file in it, such as %s", path, filepath.Join(path, "base"+snapshotSuffix))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; choose another path", path)
	case info.Size() == 0:
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	begin := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(file, begin); err != nil || string(begin) != snapshotMagic {
		return fmt.Errorf("%s exists and is not a snapshot, so it is not replaced; choose another path", path)
	}
	return nil
}

func replaceFile(from, to string) error {
	// It may have changed while the snapshot was written.
	if err := checkReplaceable(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// createFile gives a file its name, unless another file has it: a hard link replaces nothing.
func createFile(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// Some file systems have no hard links. An empty file reserves the name there.
	reserved, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	reserved.Close()
	if err := os.Rename(from, to); err != nil {
		_ = os.Remove(to)
		return err
	}
	return nil
}

// makeSaveDir creates a directory for a snapshot that is being written. It is locked while this process lives, so
// others do not remove it.
func makeSaveDir(dir string) (path string, release func(), err error) {
	for {
		path, err := os.MkdirTemp(dir, savingPrefix)
		if err != nil {
			return "", nil, err
		}
		lock, err := os.Open(path)
		if err == nil {
			err = filelock.Exclusive(lock)
		}
		if err == nil && filelock.IsAt(lock, path) {
			return path, func() { _ = os.RemoveAll(path); lock.Close() }, nil
		}
		if lock != nil {
			lock.Close()
		}
		// A sweep came between creating and locking it.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, filelock.ErrHeld) {
			_ = os.RemoveAll(path)
			return "", nil, fmt.Errorf("locking %s: %w", path, err)
		}
	}
}

// sweepSaves removes what killed processes have left of their snapshots, which hold the Secrets of a cluster. What cannot
// be removed does not matter to what the caller does.
func sweepSaves(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), savingPrefix) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		lock, err := os.Open(path)
		if err != nil {
			continue
		}
		if filelock.Exclusive(lock) == nil {
			_ = os.RemoveAll(path)
		}
		lock.Close()
	}
}

func runSave(ctx context.Context, binary, dir, path, name string) error {
	cmd := exec.CommandContext(ctx, binary, "snapshot", "--dir", dir, "--out", path, "--cluster", name)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = exitGrace
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var r report
	if json.Unmarshal(out.Bytes(), &r) == nil && r.Event == "error" {
		return &StartError{Reason: r.Reason, Message: r.Message, Hint: r.Hint}
	}
	return fmt.Errorf("the control plane binary failed: %w\n%s", err, bytes.TrimSpace(log.Bytes()))
}

// explainSave adapts an error of the control plane: it names the directory that the user knows, and gives the hint for
// a file and not the one for the state of a cluster.
func explainSave(err error, work, dir string) error {
	var failed *StartError
	if !errors.As(err, &failed) {
		return err
	}
	failed.Message = strings.ReplaceAll(failed.Message, work, dir)
	switch failed.Reason {
	case ReasonDiskFull:
		failed.Hint = "free some space, or save the snapshot on another disk: give a path"
	case ReasonInternal:
		failed.Hint = "" // there is no log of a save
	}
	return err
}
