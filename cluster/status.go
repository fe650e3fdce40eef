// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/filelock"
)

// State is whether a cluster runs and, if not, how it ended.
type State string

const (
	// Alive means that the control plane process exists. It may still be starting.
	Alive State = "Alive"
	// Dead means that the process ended without being stopped, for instance by SIGKILL or a power failure.
	Dead State = "Dead"
	// Stopped means that there is state and that the process that used it ended as it should.
	Stopped State = "Stopped"
	// Incomplete means that the process ended before the objects of another cluster, of a snapshot or of an import
	// were complete. The next start removes what there is.
	Incomplete State = "Incomplete"
	// NeverStarted means that there is no state.
	NeverStarted State = "NeverStarted"
)

// Status describes a named cluster. Unknown fields are empty.
type Status struct {
	Name       string    `json:"name"`
	Dir        string    `json:"dir"`
	State      State     `json:"state"`
	PID        int       `json:"pid,omitempty"` // of the process that runs it; for a dead one, that ran it
	Server     string    `json:"server,omitempty"`
	Kubeconfig string    `json:"kubeconfig,omitempty"`
	Version    string    `json:"version,omitempty"`  // of Kubernetes
	Emulated   string    `json:"emulated,omitempty"` // the version that it emulates, such as 1.34; empty if it is its own
	Started    time.Time `json:"started,omitzero"`
	Ephemeral  bool      `json:"ephemeral"`
	LastWords  string    `json:"lastWords,omitempty"` // what a dead control plane logged about its end, if anything
	Stopping   bool      `json:"stopping,omitempty"`  // alive, but about to end
	// Source is, for an incomplete cluster, what its objects were to be copied from: a snapshot file, the state folder of
	// another cluster, or a temporary file of an import.
	Source string `json:"source,omitempty"`
}

// Find returns the status of the cluster with that name. A cluster that was never started is not an
// error: its State is NeverStarted.
func Find(name string) (Status, error) {
	if err := checkName(name); err != nil {
		return Status{}, err
	}
	dir := clusterDir(name)
	if err := checkHome(dir); err != nil {
		return Status{}, err
	}
	return inspect(name, dir)
}

// List returns all clusters that are alive or have state, by name. If the state of some cannot be read,
// it returns the others beside the error.
func List() ([]Status, error) {
	all, err := ListAll()
	return slices.DeleteFunc(all, func(s Status) bool { return s.State == NeverStarted }), err
}

// ListAll also returns what starts that failed have left: a directory with a log, and the state NeverStarted.
func ListAll() ([]Status, error) {
	entries, err := os.ReadDir(clustersDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var found []Status
	var failed []error
	for _, entry := range entries {
		if checkName(entry.Name()) != nil {
			continue
		}
		status, err := Find(entry.Name())
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if status.State != NeverStarted || entry.IsDir() {
			found = append(found, status)
		}
	}
	slices.SortFunc(found, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return found, errors.Join(failed...)
}

func inspect(name, dir string) (Status, error) {
	s := Status{Name: name, Dir: dir, State: NeverStarted}
	who, err := lookAt(dir)
	if err != nil {
		return s, fmt.Errorf("finding cluster %q: %w", name, err)
	}
	state, found, err := readState(dir)
	if err != nil {
		return s, fmt.Errorf("finding cluster %q: %w", name, err)
	}
	switch {
	case who.held:
		s.State, s.Stopping = Alive, who.stopping
	case state.Filling != "":
		s.State, s.Source = Incomplete, state.Filling
	case !who.empty:
		s.State = Dead
	case found:
		s.State = Stopped
	default:
		// A start that failed early leaves a log and an empty lock file, and neither is state.
		return s, nil
	}
	if s.State == Dead {
		s.LastWords = lastWords(filepath.Join(dir, logFileName))
	}
	s.PID, s.Started = who.pid, who.started
	s.Version, s.Emulated, s.Ephemeral = state.Kubernetes, state.Emulated, state.Ephemeral && !state.Kept
	if state.Port != 0 {
		s.Server = "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(state.Port))
	}
	kubeconfig := filepath.Join(dir, kubeconfigFileName)
	if _, err := os.Stat(kubeconfig); err == nil {
		s.Kubeconfig = kubeconfig
	}
	return s, nil
}

// lookAt treats a missing lock file like one that no process holds.
func lookAt(dir string) (holder, error) {
	lock, err := openLock(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return holder{empty: true}, nil
	}
	if err != nil {
		return holder{}, err
	}
	defer lock.Close()
	return lock.look()
}

// Delete removes the state of a cluster that is not running. It is no error if there is none.
func Delete(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	dir := clusterDir(name)
	if err := checkHome(dir); err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := deleteState(name, dir); err != nil {
		return fmt.Errorf("deleting cluster %q: %w", name, err)
	}
	return nil
}

func deleteState(name, dir string) error {
	// Holding the lock keeps a start that happens at the same time from using a folder that is going away.
	lock, err := os.OpenFile(filepath.Join(dir, lockFileName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lockExclusively(lock, 200*time.Millisecond); err != nil {
		if errors.Is(err, filelock.ErrHeld) {
			return fmt.Errorf("it is running%s; stop it first with %q", pidSuffix(pidIn(lock)), "opdock down --name "+name)
		}
		return fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	// The state is moved away atomically: it is either complete or gone, even if removing it fails
	// halfway.
	grave, err := os.MkdirTemp(filepath.Dir(dir), ".deleted-")
	if err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(grave, name)); err != nil {
		_ = os.Remove(grave)
		return err
	}
	if err := os.RemoveAll(grave); err != nil {
		return fmt.Errorf("%w; remove the rest of it in %s manually", err, grave)
	}
	return nil
}

// lockExclusively retries for a moment before it reports that the lock is taken, because a status check
// holds it for some microseconds.
func lockExclusively(f *os.File, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return filelock.Await(ctx, f, lockPoll)
}

func pidIn(lock *os.File) int {
	l := lockFile{f: lock}
	who, err := l.look()
	if err != nil {
		return 0
	}
	return who.pid
}
