// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gocommand runs the go command.
package gocommand

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// grace is how long the go command may take to stop when it is canceled.
const grace = 10 * time.Second

// Command returns a go command that runs in a directory, with the environment of this process if env is nil.
//
// If it is canceled, the compilers and linkers that it started are interrupted as well, which go itself does not do when
// it is killed. They remove their unfinished output.
func Command(ctx context.Context, dir string, env []string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir, command.Env = dir, env
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = grace
	return command
}

// IsMissing reports whether a command failed because there is no go command on PATH.
func IsMissing(err error) bool { return errors.Is(err, exec.ErrNotFound) }

// Find returns an error for which IsMissing is true if there is no go command on PATH.
func Find() error {
	_, err := exec.LookPath("go")
	return err
}
