// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state owns the folder in which a cluster lives: who may use it, which
// version wrote it, and whether there is room for it to grow.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	"golang.org/x/sys/unix"

	"github.com/opdock/opdock/controlplane/internal/fault"
)

// Format is the layout of the state folder. It grows by one whenever an older
// control plane could misread what a newer one wrote.
const Format = 1

const (
	// RoomToStart is what a control plane needs to start and to work for a
	// while: the write-ahead log, the database and the log file.
	RoomToStart = 128 << 20
	// RoomToStop is what it needs to end in order.
	RoomToStop = 32 << 20
)

// Info is what state.json remembers between two runs.
type Info struct {
	Format     int    `json:"format"`
	Kubernetes string `json:"kubernetes"`
	Port       int    `json:"port"`
	Ephemeral  bool   `json:"ephemeral"`
	// Complete is the Kubernetes version with which the cluster was last ready:
	// from then on everything that a cluster starts with is there.
	Complete string    `json:"complete,omitempty"`
	Created  time.Time `json:"created"`
	// Emulated is the emulated Kubernetes version, such as 1.34; empty if it is the control plane's
	// own. It is only informative: the version of the data is in Complete.
	Emulated string `json:"emulated,omitempty"`
	// AdmissionPlugins are those that are enabled beside the default ones.
	AdmissionPlugins []string `json:"admissionPlugins,omitempty"`
	// Filling names what the first data of the cluster is copied from, until it
	// has been ready once.
	Filling string `json:"filling,omitempty"`
	// Durable and History are the flags of the last run, for a restore of a snapshot: it keeps them.
	Durable bool          `json:"durable,omitempty"`
	History time.Duration `json:"history,omitempty"`
	// Kept is true while an ephemeral cluster is stopped to start again at once: its state stays. It
	// is false again as soon as the cluster is ready.
	Kept bool `json:"kept,omitempty"`
}

// Holder is what the lock file says about the living process.
type Holder struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Stopping is true from the begin of a stop.
	Stopping bool `json:"stopping,omitempty"`
}

// Folder is a state folder that this process holds exclusively.
type Folder struct {
	Dir  string
	Info Info
	// New is true when nothing was kept from an earlier run.
	New bool
	// Durable makes what is written survive a power failure.
	Durable bool

	lock       *os.File
	holder     Holder
	lockBefore []byte // what the lock file said before it was taken
}

// Open takes the folder for this process, creating it where it is missing.
// The kubernetes version is the one that is about to run on it.
func Open(dir, kubernetes string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, WriteFault("creating the state folder", dir, err)
	}
	f := &Folder{Dir: dir}
	if err := f.takeLock(); err != nil {
		return nil, err
	}
	_ = os.Remove(f.Path(keptFile)) // an earlier run was to be kept, if any
	err := f.load(kubernetes)
	if err == nil && !f.New {
		err = f.RollBack()
	}
	if err == nil {
		err = CheckRoom(dir, RoomToStart)
	}
	if err != nil {
		// A start that was refused leaves no trace of itself.
		_ = f.lock.Truncate(0)
		_, _ = f.lock.WriteAt(f.lockBefore, 0)
		f.release()
		return nil, err
	}
	return f, nil
}

// Path joins names to the folder's own path.
func (f *Folder) Path(names ...string) string {
	return filepath.Join(append([]string{f.Dir}, names...)...)
}

// Save writes state.json so that a crash leaves either the old or the new one.
func (f *Folder) Save() error {
	data, err := json.MarshalIndent(f.Info, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding state.json: %w", err)
	}
	if err := WriteFile(f.Path("state.json"), append(data, '\n')); err != nil || !f.Durable {
		return err
	}
	return Sync(f.Path("state.json"), f.Dir)
}

// Close gives the folder back. An empty lock file says that the run ended
// cleanly; one that still names a process says that it did not. An ephemeral
// folder is removed altogether.
func (f *Folder) Close(clean bool) error {
	defer f.release()
	if !f.Info.Ephemeral || f.Info.Kept {
		if clean {
			return f.lock.Truncate(0)
		}
		return nil
	}
	// Moved away first: a cluster of the same name that starts meanwhile gets a new folder instead
	// of one that is being removed.
	leaving := fmt.Sprintf("%s.removed-%d", f.Dir, os.Getpid())
	if err := os.Rename(f.Dir, leaving); err != nil {
		return fmt.Errorf("removing ephemeral state: %w", err)
	}
	if err := os.RemoveAll(leaving); err != nil {
		return fmt.Errorf("removing ephemeral state: %w", err)
	}
	return nil
}

// Stopping notes in the lock file that the process is about to end. Others then wait for the end, and
// do not use the cluster.
func (f *Folder) Stopping() error {
	f.holder.Stopping = true
	return f.writeHolder()
}

// Keep makes Close leave the state of an ephemeral cluster to the next start.
func (f *Folder) Keep() error {
	if !f.Info.Ephemeral {
		return nil
	}
	f.Info.Kept = true
	return f.Save()
}

// Abandon gives the folder back after a start that failed. What a new cluster
// left behind is removed, except the log, which may say why; what was there
// before stays, whatever was asked for.
func (f *Folder) Abandon() error {
	if f.New && f.Info.Ephemeral {
		return f.Close(true)
	}
	f.Info.Ephemeral = false
	if !f.New {
		return f.Close(true)
	}
	defer f.release()
	if err := f.clear(); err != nil {
		return err
	}
	if err := os.Remove(f.Path("lock")); err != nil {
		return fmt.Errorf("removing the lock: %w", err)
	}
	_ = os.Remove(f.Dir) // stays if there is a log
	return nil
}

func (f *Folder) release() { _ = f.lock.Close() }

// lockPatience outlasts those who only look whether the lock is held, which
// takes them a moment of holding it.
const lockPatience = 200 * time.Millisecond

func (f *Folder) takeLock() error {
	path := f.Path("lock")
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return WriteFault("opening the lock file", path, err)
	}
	err = flock(lock)
	if errors.Is(err, unix.EWOULDBLOCK) || (err == nil && !sameFile(lock, path)) {
		defer func() { _ = lock.Close() }()
		return f.lockedBy(lock)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("locking %s: %w", path, err), lock.Close())
	}
	f.lock = lock
	if f.lockBefore, err = io.ReadAll(lock); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := lock.Truncate(0); err != nil {
		return WriteFault("writing the lock file", path, err)
	}
	f.holder = Holder{PID: os.Getpid(), Started: time.Now().UTC().Truncate(time.Second)}
	return f.writeHolder()
}

// writeHolder overwrites an entry that is not longer.
func (f *Folder) writeHolder() error {
	data, err := json.Marshal(f.holder)
	if err != nil {
		return fmt.Errorf("encoding the lock: %w", err)
	}
	if _, err := f.lock.WriteAt(append(data, '\n'), 0); err != nil {
		return WriteFault("writing the lock file", f.lock.Name(), err)
	}
	return nil
}

// flock takes the lock, giving up after lockPatience.
func flock(lock *os.File) error {
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
	}
}

// sameFile is false when the folder was removed between opening the lock file
// and getting the lock.
func sameFile(lock *os.File, path string) bool {
	mine, err := lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

func (f *Folder) lockedBy(lock *os.File) error {
	var holder Holder
	who := "another process"
	if json.NewDecoder(lock).Decode(&holder) == nil && holder.PID > 0 {
		who = fmt.Sprintf("process %d", holder.PID)
	}
	return &fault.Error{
		Reason:  fault.Locked,
		Message: fmt.Sprintf("the state folder %s is in use by %s", f.Dir, who),
		Hint:    "use the running cluster, stop it first, or choose another name",
	}
}

func (f *Folder) load(kubernetes string) error {
	path := f.Path("state.json")
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := f.refuseStrangers(); err != nil {
			return err
		}
		f.New = true
	case err != nil:
		return fmt.Errorf("reading state: %w", err)
	default:
		if err := json.Unmarshal(data, &f.Info); err != nil {
			return Corrupt(f.Dir, fmt.Errorf("state.json does not parse: %w", err))
		}
	}

	if (f.Info.Ephemeral && !f.Info.Kept) || f.Info.Filling != "" {
		// Its process was killed before it could clean up. It is ephemeral, or an incomplete copy that
		// was never used.
		if err := f.clear(); err != nil {
			return err
		}
		f.New = true
	}
	if f.New {
		f.Info = Info{Format: Format, Kubernetes: kubernetes, Created: time.Now().UTC().Truncate(time.Second)}
		return nil
	}
	if f.Info.Format > Format || semver.Compare(semver.MajorMinor(f.Info.Kubernetes), semver.MajorMinor(kubernetes)) > 0 {
		return &fault.Error{
			Reason: fault.NewerState,
			Message: fmt.Sprintf("the state in %s was written by a newer control plane (Kubernetes %s, format %d); this one is Kubernetes %s, format %d",
				f.Dir, f.Info.Kubernetes, f.Info.Format, kubernetes, Format),
			Hint: "use the newer control plane again, or start a cluster of another name",
		}
	}
	f.Info.Kubernetes = kubernetes
	return nil
}

// ReadInfo returns what a state folder remembers, which another process may be using.
func ReadInfo(dir string) (Info, error) {
	var info Info
	data, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		return info, fmt.Errorf("reading state: %w", err)
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return info, Corrupt(dir, fmt.Errorf("state.json does not parse: %w", err))
	}
	return info, nil
}

// refuseStrangers ensures that a folder without state.json is empty: the files of a new cluster
// are removed, and no other files may be among them.
func (f *Folder) refuseStrangers() error {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return fmt.Errorf("reading the state folder: %w", err)
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == "lock" || isLog(name):
		case name == "etcd" || name == "pki":
			return Corrupt(f.Dir, errors.New("there is data but no state.json"))
		default:
			return &fault.Error{
				Reason:  fault.KeptState,
				Message: fmt.Sprintf("%s is not a state folder: it contains %s", f.Dir, name),
				Hint:    "choose a folder that is empty or does not exist yet",
			}
		}
	}
	return nil
}

func isLog(name string) bool { return strings.HasPrefix(name, "controlplane.log") }

func (f *Folder) clear() error {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return fmt.Errorf("reading state: %w", err)
	}
	for _, entry := range entries {
		// The lock is ours already, and the log is being written to.
		if name := entry.Name(); name != "lock" && !isLog(name) {
			if err := os.RemoveAll(f.Path(name)); err != nil {
				return fmt.Errorf("clearing ephemeral state: %w", err)
			}
		}
	}
	return nil
}

// Unusable explains why existing state could not be used. It calls the state
// damaged only if the system had no other reason to refuse it.
func Unusable(dir string, cause error) error {
	var shown *fault.Error
	switch {
	case errors.As(cause, &shown):
		return cause
	case errors.Is(cause, unix.ENOSPC) || errors.Is(cause, unix.EDQUOT):
		return diskFull(dir, cause)
	case errors.Is(cause, os.ErrPermission) || errors.Is(cause, unix.EROFS) || errors.Is(cause, unix.EMFILE) || errors.Is(cause, unix.ENFILE):
		return fmt.Errorf("using the state in %s: %w", dir, cause)
	default:
		return Corrupt(dir, cause)
	}
}

// Corrupt means that the state cannot be used and was not changed.
func Corrupt(dir string, cause error) error {
	return &fault.Error{
		Reason:  fault.CorruptState,
		Message: fmt.Sprintf("the state in %s is damaged", dir),
		Hint:    "nothing was changed; restore the folder from a copy, or remove it and start again",
		Cause:   cause,
	}
}
