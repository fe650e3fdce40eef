// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

const (
	homeEnv       = "OPDOCK_HOME"
	maxNameLength = 40
)

var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// Home is the folder that holds the state of all named clusters: $OPDOCK_HOME, else
// $XDG_STATE_HOME/opdock, else ~/.local/state/opdock, else opdock-UID in the folder for temporary files.
func Home() string {
	dir, _ := findHome()
	return dir
}

// findHome also reports whether every user can create a folder of that name there.
func findHome() (dir string, amongOthers bool) {
	if dir := os.Getenv(homeEnv); dir != "" {
		return absolute(dir), false
	}
	// The XDG specification requires relative paths to be ignored.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "opdock"), false
	}
	if dir := userHome(); dir != "" {
		return filepath.Join(dir, ".local", "state", "opdock"), false
	}
	// Without any home, as in some containers, state that lasts until the next boot beats no state.
	return filepath.Join(os.TempDir(), "opdock-"+strconv.Itoa(os.Getuid())), true
}

// checkHome refuses a home that another user may have prepared, to read the keys of clusters or to replace them.
func checkHome(dir string) error {
	home, amongOthers := findHome()
	if !amongOthers {
		return nil
	}
	return checkOwned(home, dir, os.Getuid())
}

// checkOwned returns an error unless every folder from the top down to dir, as far as they exist, is a directory, and not a
// link, that belongs to the user and that no other user can write to.
func checkOwned(top, dir string, uid int) error {
	below, err := filepath.Rel(top, dir)
	if err != nil {
		return err
	}
	current := top
	for _, name := range append([]string{""}, strings.Split(below, string(filepath.Separator))...) {
		current = filepath.Join(current, name)
		info, err := os.Lstat(current)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		owner := -1
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			owner = int(stat.Uid)
		}
		const othersWrite = 0o022
		var problem string
		switch {
		case !info.IsDir():
			problem = "is not a directory"
		case owner != uid:
			problem = fmt.Sprintf("belongs to user %d", owner)
		case info.Mode().Perm()&othersWrite != 0:
			problem = fmt.Sprintf("is writable by other users (mode %v)", info.Mode().Perm())
		default:
			continue
		}
		return fmt.Errorf("the state directory %s %s, so its keys would not be safe; set %s to a directory that only you can write to", current, problem, homeEnv)
	}
	return nil
}

func userHome() string {
	if dir, err := os.UserHomeDir(); err == nil && filepath.IsAbs(dir) {
		return dir
	}
	// $HOME is missing under some init systems and CI runners that do have a passwd entry.
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return ""
}

func clustersDir() string { return filepath.Join(Home(), "clusters") }

func clusterDir(name string) string { return filepath.Join(clustersDir(), name) }

func checkName(name string) error {
	if len(name) > maxNameLength || !namePattern.MatchString(name) {
		return &NameError{Name: name}
	}
	return nil
}

// makeStateDir returns the folder for the state of a cluster, which only its owner may read: it holds
// the keys of an administrator. An unnamed cluster gets a temporary one.
func makeStateDir(name string) (string, error) {
	if name == "" {
		dir, err := os.MkdirTemp("", "opdock-")
		if err != nil {
			return "", fmt.Errorf("creating a temporary state directory: %w; set TMPDIR to use another location", err)
		}
		return absolute(dir), nil
	}
	dir := clusterDir(name)
	if err := checkHome(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("creating the state directory of cluster %q: %w; set %s to use another location", name, err, homeEnv)
	}
	// The folder may be older than this call. Chmod also fails if another user owns it.
	if err := os.Chmod(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the state directory of cluster %q private: %w; set %s to use another location", name, err, homeEnv)
	}
	return dir, nil
}

// absolute returns the path unchanged if the working directory no longer exists. The path is more helpful than
// that error.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
