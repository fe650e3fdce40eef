// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/opdock/opdock/internal/dev/mounts"
	"github.com/opdock/opdock/internal/lines"
)

const (
	// stopGrace is how long an operator may take to end after SIGTERM: long enough to finish a pass and release a lease.
	stopGrace = 5 * time.Second
	// pipeGrace is for a child of the operator that has its output open.
	pipeGrace = time.Second
	// lastLines is how many lines of its log are kept of a process.
	lastLines = 12
)

// processSpec describes the process to run.
type processSpec struct {
	binary string
	dir    string
	args   []string
	env    []string
	// mounts are the mounts of the process; nil for none.
	mounts *mounts.List
	// line receives each line that the process writes, from one goroutine at a time.
	line func(string)
}

// process is the operator as it runs.
type process struct {
	cmd   *exec.Cmd
	began time.Time
	ready *readiness
	// worked is true once it was seen to do its work.
	worked bool

	done chan struct{}
	exit error // how it ended; set before done is closed

	mu     sync.Mutex
	last   []string
	wanted bool // it was asked to stop
}

// startProcess starts the operator. It ends with this process, however that ends.
func startProcess(spec processSpec) (*process, error) {
	p := &process{cmd: exec.Command(spec.binary, spec.args...), began: time.Now(), ready: newReadiness(), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = spec.dir, spec.env
	output := lines.NewWriter(func(line string) {
		p.remember(line)
		p.ready.read(line)
		spec.line(line)
	})
	p.cmd.Stdout, p.cmd.Stderr = output, output
	p.cmd.WaitDelay = pipeGrace
	p.cmd.SysProcAttr = processAttributes()
	if spec.mounts != nil {
		if err := mounts.Wrap(p.cmd, *spec.mounts); err != nil {
			return nil, fmt.Errorf("starting the operator: %w", err)
		}
	}
	started := make(chan error)
	go func() {
		keepThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		err = p.cmd.Wait()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil
		}
		output.Flush()
		p.exit = err
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	return p, nil
}

// keepThread is for a goroutine that starts a child with processAttributes and waits for it.
// The kernel kills the child when the thread that started it ends, so the thread must stay
// until then. It is never unlocked, and ends with the goroutine.
func keepThread() { runtime.LockOSThread() }

func (p *process) remember(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last) == lastLines {
		p.last = p.last[1:]
	}
	p.last = append(p.last, line)
}

// tail is the end of its log.
func (p *process) tail() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.last...)
}

func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// crashed reports whether it has ended without being asked to.
func (p *process) crashed() bool {
	if p == nil || p.running() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.wanted
}

// stop ends the operator in order, or else by force, and returns when it has ended.
func (p *process) stop(grace time.Duration) (killed bool) {
	if !p.running() {
		return false
	}
	p.mu.Lock()
	p.wanted = true
	p.mu.Unlock()
	// The operator has its own process group, so its child processes end as well.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		killed = true
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
	return killed
}

// how describes in a few words how the process ended.
func (p *process) how() string {
	var exit *exec.ExitError
	switch {
	case p.exit == nil:
		return "exited with status 0"
	case errors.As(p.exit, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return "was terminated by signal " + status.Signal().String()
		}
		return fmt.Sprintf("exited with status %d", exit.ExitCode())
	default:
		return "exited: " + p.exit.Error()
	}
}
