// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/opdock/opdock/internal/gocommand"
	"github.com/opdock/opdock/internal/hint"
)

const (
	// DebugPort is the default port of the debugger. It is the usual port of Delve.
	DebugPort = 2345

	delvePackage = "github.com/go-delve/delve/cmd/dlv"
	// delveVersion is installed if the user has no Delve.
	delveVersion = "v1.27.2"

	// debuggerPatience is how long Delve may take to attach to the operator.
	debuggerPatience = 20 * time.Second
	// answerPatience is how long a response may take before the request is repeated.
	answerPatience = time.Second
	// detachGrace is how long it may take to detach.
	detachGrace = 2 * time.Second
)

// FindDebugger returns the path of Delve: the user's own, or one that is installed in a directory of ours. The first
// installation compiles it.
func FindDebugger(ctx context.Context, dir string, env []string, progress func(text string)) (string, error) {
	if own, err := exec.LookPath("dlv"); err == nil {
		return own, nil
	}
	path := filepath.Join(dir, "delve-"+delveVersion, "dlv")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	progress("installing Delve " + delveVersion)
	// Outside of any project, so no go.mod affects the installation.
	install := gocommand.Command(ctx, os.TempDir(),
		append(slices.Clone(env), "GOBIN="+filepath.Dir(path), "GOFLAGS=", "GOWORK=off", "GOOS=", "GOARCH=", "CGO_ENABLED=0"),
		"install", delvePackage+"@"+delveVersion)
	if output, err := install.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", hint.With(fmt.Errorf("installing Delve: %w: %s", err, bytes.TrimSpace(output)), "install it yourself: go install "+delvePackage+"@latest")
	}
	return path, nil
}

// debugger is Delve, attached to the operator.
type debugger struct {
	operator *process
	cmd      *exec.Cmd
	output   *tailBuffer
	done     chan struct{}
}

// attachDebugger attaches Delve to a process and serves DAP. The process continues until a client sets a breakpoint.
func attachDebugger(ctx context.Context, delve string, p *process, binary string, port int, env []string) (*debugger, error) {
	address := net.JoinHostPort(loopback, strconv.Itoa(port))
	if err := awaitProgram(ctx, p, binary); err != nil {
		return nil, err
	}
	d := &debugger{operator: p, output: &tailBuffer{}, done: make(chan struct{})}
	d.cmd = exec.Command(delve, "attach", strconv.Itoa(p.cmd.Process.Pid), binary, "--headless", "--listen="+address, "--accept-multiclient",
		"--continue", "--api-version=2", "--check-go-version=false")
	d.cmd.Env = env
	d.cmd.Stdout, d.cmd.Stderr = d.output, d.output
	d.cmd.SysProcAttr = processAttributes()
	started := make(chan error)
	go func() {
		keepThread() // see processAttributes
		err := d.cmd.Start()
		started <- err
		if err == nil {
			_ = d.cmd.Wait() // how it ends does not matter
			close(d.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting the debugger: %w", err)
	}
	if err := d.awaitAttached(ctx, address); err != nil {
		d.stop()
		return nil, err
	}
	return d, nil
}

// awaitProgram waits until a process has become the program: it starts as this program, which sets up the mounts.
func awaitProgram(ctx context.Context, p *process, binary string) error {
	ctx, cancel := context.WithTimeout(ctx, debuggerPatience)
	defer cancel()
	ticker := time.NewTicker(dialInterval)
	defer ticker.Stop()
	for {
		now, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "exe"))
		if err != nil || now == binary {
			return nil // where there is no such link, there is no such beginning either
		}
		select {
		case <-ticker.C:
		case <-p.done:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to start: %w", binary, context.Cause(ctx))
		}
	}
}

// awaitAttached waits until Delve has attached and the operator continues. Delve listens before it attaches, but
// responds only afterwards. Ending Delve before that would leave the operator stopped.
func (d *debugger) awaitAttached(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, debuggerPatience)
	defer cancel()
	ticker := time.NewTicker(dialInterval)
	defer ticker.Stop()
	for {
		running, err := isRunning(ctx, address)
		if running {
			return nil
		}
		select {
		case <-ticker.C:
		case <-d.operator.done:
			return errEnded
		case <-d.done:
			return fmt.Errorf("the debugger has exited: %s", d.output)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the debugger on %s is not ready: %s", address, d.output), err, context.Cause(ctx))
		}
	}
}

// isRunning asks Delve, in its own protocol, whether the process that it is attached to runs.
func isRunning(ctx context.Context, address string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, `{"method":"RPCServer.State","params":[{"NonBlocking":true}],"id":1}`); err != nil {
		return false, err
	}
	var answer struct {
		Result struct{ State struct{ Running bool } }
		Error  any
	}
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return false, err
	}
	if answer.Error != nil {
		return false, fmt.Errorf("the debugger reported: %v", answer.Error)
	}
	return answer.Result.State.Running, nil
}

// stop detaches from the operator, which continues.
func (d *debugger) stop() {
	if d == nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-d.done:
	case <-time.After(detachGrace):
		_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
		<-d.done
	}
	// One that ended while it attached leaves the operator stopped.
	_ = d.operator.cmd.Process.Signal(syscall.SIGCONT)
}

// debug attaches the debugger to the operator that was just started.
func (s *Session) debug(ctx context.Context, next *process) error {
	if s.Debugger.Path == "" {
		return nil
	}
	attached, err := attachDebugger(ctx, s.Debugger.Path, next, s.builder.output, s.Debugger.Port, s.Env)
	if err != nil {
		return err
	}
	s.debugger = attached
	s.Screen.Say(fmt.Sprintf("the debugger is attached; connect to %s (DAP)", net.JoinHostPort(loopback, strconv.Itoa(s.Debugger.Port))))
	return nil
}
