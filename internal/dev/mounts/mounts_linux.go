// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// helperName is the name under which this program runs to set up the mounts, before it becomes the other program.
const helperName = "opdock-mounts"

// Numbers of the kernel's that package syscall does not have.
const (
	capSysAdmin        = 21
	prSetPtracer       = 0x59616d61
	prCapAmbient       = 47
	prCapAmbientClear  = 4
	exitCodeOfFailures = 125
)

func init() {
	// There is no way back to the usual program: a process with this name only sets up mounts.
	if len(os.Args) > 2 && os.Args[0] == helperName {
		fmt.Fprintln(os.Stderr, "opdock: preparing the files of the operator:", become(os.Args[1], os.Args[2:]))
		os.Exit(exitCodeOfFailures)
	}
}

// Check tries whether programs can run with the list.
func Check(list List) error {
	command := exec.Command("/proc/self/exe", "check")
	command.SysProcAttr = &syscall.SysProcAttr{}
	if err := wrap(command, list, ""); err != nil {
		return err
	}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// Wrap changes a command that has not started yet to run with the list.
func Wrap(command *exec.Cmd, list List) error { return wrap(command, list, command.Path) }

func wrap(command *exec.Cmd, list List, program string) error {
	encoded, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encoding mounts: %w", err)
	}
	command.Args = append([]string{helperName, string(encoded), program}, command.Args...)
	command.Path = "/proc/self/exe"
	attributes := command.SysProcAttr
	attributes.Cloneflags |= syscall.CLONE_NEWNS
	if list.Hostname != "" {
		attributes.Cloneflags |= syscall.CLONE_NEWUTS
	}
	if os.Geteuid() == 0 {
		return nil // it may mount as this user
	}
	attributes.Cloneflags |= syscall.CLONE_NEWUSER
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	attributes.AmbientCaps = []uintptr{capSysAdmin}
	return nil
}

// become sets up the mounts, and executes the program. It returns only on an error.
func become(encoded string, arguments []string) error {
	var list List
	if err := json.Unmarshal([]byte(encoded), &list); err != nil {
		return fmt.Errorf("reading the list of mounts: %w", err)
	}
	if err := list.mount(); err != nil {
		return err
	}
	if list.Hostname != "" {
		if err := syscall.Sethostname([]byte(list.Hostname)); err != nil {
			return fmt.Errorf("setting the name of the host: %w", err)
		}
	}
	// Capabilities were for this only.
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prCapAmbient, prCapAmbientClear, 0, 0, 0, 0); errno != 0 && os.Geteuid() != 0 {
		return fmt.Errorf("dropping capabilities: %w", errno)
	}
	if list.Traceable {
		// If the kernel has no such limit, there is nothing to lift.
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetPtracer, ^uintptr(0), 0)
	}
	program := arguments[0]
	if program == "" {
		os.Exit(0) // only a check
	}
	return fmt.Errorf("starting %s: %w", program, syscall.Exec(program, arguments[1:], os.Environ()))
}

func (l List) mount() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	grown := 0
	for _, file := range l.Files {
		place, err := resolve(file.Path)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) {
			stage := filepath.Join(l.Dir, "stage-"+strconv.Itoa(grown))
			grown++
			if err := grow(place, stage, isFolder(file.Source)); err != nil {
				return fmt.Errorf("making room for %s: %w", file.Path, err)
			}
		}
		if err := syscall.Mount(file.Source, place, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", file.Path, err)
		}
	}
	return nil
}

// resolve follows the symbolic links on the way to a file, as far as there is a way.
func resolve(path string) (string, error) {
	var missing []string
	for {
		place, err := filepath.EvalSymlinks(path)
		if err == nil {
			slices.Reverse(missing)
			return filepath.Join(append([]string{place}, missing...)...), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || path == "/" {
			return "", fmt.Errorf("looking for %s: %w", path, err)
		}
		missing = append(missing, filepath.Base(path))
		path = filepath.Dir(path)
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// grow creates an empty file or folder at a path that does not exist. Its nearest existing folder is covered by one in memory,
// with the same content, where new files can be created.
func grow(place, stage string, folder bool) error {
	exists := filepath.Dir(place)
	for {
		if _, err := os.Lstat(exists); err == nil {
			break
		}
		exists = filepath.Dir(exists)
	}
	if err := os.MkdirAll(stage, 0o700); err != nil {
		return err
	}
	if file, err := os.OpenFile(filepath.Join(exists, ".opdock-mounts"), os.O_RDONLY, 0); err == nil {
		file.Close() // a folder in memory already, which has room
	} else if err := cover(exists, stage); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	if folder {
		return os.Mkdir(place, 0o700)
	}
	return os.WriteFile(place, nil, 0o600)
}

// cover puts a folder in memory over another, with everything that is in that.
func cover(dir, stage string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", stage, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting a file system in memory: %w", err)
	}
	for _, entry := range entries {
		from, to := filepath.Join(dir, entry.Name()), filepath.Join(stage, entry.Name())
		if err := mirror(entry, from, to); err != nil {
			return fmt.Errorf("mounting %s: %w", from, err)
		}
	}
	if err := os.WriteFile(filepath.Join(stage, ".opdock-mounts"), nil, 0o600); err != nil {
		return err
	}
	return syscall.Mount(stage, dir, "", syscall.MS_BIND|syscall.MS_REC, "")
}

func mirror(entry fs.DirEntry, from, to string) error {
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case entry.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(to, nil, 0o600); err != nil {
			return err
		}
	}
	err := syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, "")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed in the meantime
	}
	return err
}
