// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

const (
	// snapshotSuffix is how the names of snapshot files end.
	snapshotSuffix = ".snapshot"

	// The first line of a snapshot file, and the newest format that this package understands.
	snapshotMagic  = "opdock-snapshot/"
	snapshotFormat = 1
	// checksumSize is the length of a file's last line, the checksum of everything before it.
	checksumSize = 2*sha256.Size + 1
)

// Snapshot describes a file that holds all objects of a cluster at one revision. It holds Secrets as well, so only its
// owner may read it, but not the keys of the cluster itself.
type Snapshot struct {
	Name       string    `json:"name,omitempty"` // in Home()/snapshots; empty for a file elsewhere
	Path       string    `json:"path"`
	Cluster    string    `json:"cluster,omitempty"`  // the name of the cluster it was taken of
	Kubernetes string    `json:"kubernetes"`         // the version of its control plane
	Emulated   string    `json:"emulated,omitempty"` // the version that it emulated, if it did
	Revision   int64     `json:"revision"`           // the resource version
	Objects    int64     `json:"objects"`
	Created    time.Time `json:"created"`
	Bytes      int64     `json:"bytes"` // of the file
}

// SnapshotError is returned for a file that cannot be used as a snapshot.
type SnapshotError struct {
	Path   string
	Reason string
}

func (e *SnapshotError) Error() string {
	return fmt.Sprintf("%s cannot be used: %s", e.Path, e.Reason)
}

func snapshotsDir() string { return filepath.Join(Home(), "snapshots") }

// SnapshotFile returns the path of a snapshot that is given by its name, which is one that a cluster could have, or by its
// path, which contains a slash or ends in ".snapshot".
func SnapshotFile(nameOrPath string) (string, error) {
	if strings.ContainsRune(nameOrPath, filepath.Separator) || strings.HasSuffix(nameOrPath, snapshotSuffix) {
		return absolute(nameOrPath), nil
	}
	if err := checkName(nameOrPath); err != nil {
		return "", fmt.Errorf("%q is not the name of a snapshot; use at most %d lower case letters, digits and dashes, or a path that ends in %s",
			nameOrPath, maxNameLength, snapshotSuffix)
	}
	dir := snapshotsDir()
	if err := checkHome(dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, nameOrPath+snapshotSuffix), nil
}

// ReadSnapshot returns the header of a snapshot file. It does not verify the rest: see [CheckSnapshot].
func ReadSnapshot(path string) (Snapshot, error) {
	path = absolute(path)
	file, err := os.Open(path)
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading a snapshot: %w", err)
	}
	defer file.Close()
	return readSnapshot(file, path)
}

func readSnapshot(file *os.File, path string) (Snapshot, error) {
	fail := func(format string, values ...any) (Snapshot, error) {
		return Snapshot{}, &SnapshotError{Path: path, Reason: fmt.Sprintf(format, values...)}
	}
	info, err := file.Stat()
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading %s: %w", path, err)
	}
	lines := bufio.NewReader(io.LimitReader(file, 64<<10))
	first, _ := lines.ReadString('\n')
	number, isSnapshot := strings.CutPrefix(first, snapshotMagic)
	if !isSnapshot {
		return fail("it is not a snapshot of Opdock")
	}
	format, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		return fail("it is cut off or damaged")
	}
	if format > snapshotFormat {
		return fail("it was written by a newer version of Opdock (format %d; this one reads %d)", format, snapshotFormat)
	}
	header, err := lines.ReadBytes('\n')
	var s Snapshot
	if err != nil || json.Unmarshal(header, &s) != nil {
		return fail("it is cut off or damaged")
	}
	s.Name, s.Path, s.Bytes = "", path, info.Size()
	s.Cluster, s.Kubernetes, s.Emulated = printable(s.Cluster), printable(s.Kubernetes), printable(s.Emulated)
	if filepath.Dir(path) == snapshotsDir() {
		s.Name = strings.TrimSuffix(filepath.Base(path), snapshotSuffix)
	}
	return s, nil
}

// CheckSnapshot reads a whole file and returns an error if one bit of it is not as it was written, or if it is from a
// newer version of Kubernetes than the control plane, which could not read its objects.
func CheckSnapshot(path string) (Snapshot, error) {
	path = absolute(path)
	file, err := os.Open(path)
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading a snapshot: %w", err)
	}
	defer file.Close()
	s, err := readSnapshot(file, path)
	if err != nil {
		return Snapshot{}, err
	}
	if semver.Compare(semver.MajorMinor(s.Kubernetes), semver.MajorMinor(KubernetesVersion)) > 0 {
		return Snapshot{}, &SnapshotError{Path: path, Reason: fmt.Sprintf("it was written by a newer version of Opdock (Kubernetes %s; this one is %s)",
			s.Kubernetes, KubernetesVersion)}
	}
	sum := sha256.New()
	checked := s.Bytes - checksumSize
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, checked)); err != nil {
		return Snapshot{}, fmt.Errorf("reading %s: %w", path, err)
	}
	last, err := io.ReadAll(io.NewSectionReader(file, checked, checksumSize))
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if string(bytes.TrimSpace(last)) != hex.EncodeToString(sum.Sum(nil)) {
		return Snapshot{}, &SnapshotError{Path: path, Reason: "it is cut off or damaged: its checksum does not match"}
	}
	return s, nil
}

// Snapshots returns the snapshots in Home()/snapshots, by name. If some cannot be read, it returns the others beside the
// error.
func Snapshots() ([]Snapshot, error) {
	dir := snapshotsDir()
	if err := checkHome(dir); err != nil {
		return nil, err
	}
	sweepSaves(dir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing snapshots: %w", err)
	}
	var found []Snapshot
	var failed []error
	for _, entry := range entries {
		name, isSnapshot := strings.CutSuffix(entry.Name(), snapshotSuffix)
		if !isSnapshot || checkName(name) != nil {
			continue
		}
		s, err := ReadSnapshot(filepath.Join(dir, entry.Name()))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b Snapshot) int { return strings.Compare(a.Name, b.Name) })
	return found, errors.Join(failed...)
}

// DeleteSnapshot removes the snapshot of that name. The error is fs.ErrNotExist's if there is none.
func DeleteSnapshot(name string) error {
	path, err := SnapshotFile(name)
	if err != nil {
		return err
	}
	if filepath.Dir(path) != snapshotsDir() {
		return fmt.Errorf("%s is not among the snapshots of Opdock; remove the file itself", path)
	}
	sweepSaves(snapshotsDir())
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("deleting snapshot %q: %w", name, err)
	}
	return nil
}
