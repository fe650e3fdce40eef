// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/opdock/opdock/internal/lens"
)

// command is an operator that a command of the user runs.
type command struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // set before ended is closed
}

func (o *Options) runCommand(proxy *lens.Lens, dir string) (*command, error) {
	kubeconfig, err := proxy.Kubeconfig()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.Dir, o.Log, o.Log
	cmd.Env = slices.Concat(o.Env, lens.Environment(path))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it starts ends with it
	cmd.WaitDelay = stopGrace
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Command[0], err)
	}
	c := &command{cmd: cmd, ended: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// Ended implements Process.
func (c *command) Ended() <-chan struct{} { return c.ended }

// Err implements Process.
func (c *command) Err() error { return c.err }

// Stop implements Process.
func (c *command) Stop() {
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGTERM) // it may be gone already
	select {
	case <-c.ended:
	case <-time.After(stopGrace):
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-c.ended
	}
}

// Lacks implements Process: the log of a command may be in any form.
func (*command) Lacks() <-chan struct{} { return nil }

// Complete implements Process.
func (*command) Complete(context.Context) (bool, error) { return false, nil }

// Lacking implements Process.
func (*command) Lacking() []string { return nil }

// Idle implements Process.
func (*command) Idle() []string { return nil }
