// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// stopTimeout is far more than the second or two that a stop takes.
	stopTimeout = 30 * time.Second
	// abandonTimeout is shorter, because a caller that cancels a start should not wait long.
	abandonTimeout = 15 * time.Second
	// exitGrace is the time for a process to exit after its last report.
	exitGrace = 10 * time.Second
	// lockPoll is the interval at which a lock that another process holds is tried. The kernel reports the
	// release of a flock only to processes that wait to take it.
	lockPoll = 10 * time.Millisecond
)

// Descriptors of the control plane process; exec.Cmd numbers ExtraFiles from 3.
const (
	reportFD   = 3
	lifelineFD = 4
)

// process is a control plane that this process started.
type process struct {
	cmd      *exec.Cmd
	detached bool
	began    time.Time
	log      *logSink
	report   *os.File // read end; closed once the start has ended one way or the other
	lifeline *os.File // write end, never written to: that it is open is the message. nil if detached

	done chan struct{}
	exit error // how it ended; set before done is closed
}

func spawn(binary, dir string, o Options, log *logSink) (*process, error) {
	reportReader, reportWriter, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("creating the report pipe: %w", err)
	}
	defer reportWriter.Close()

	p := &process{
		cmd: exec.Command(binary, serveArgs(dir, o)...), detached: o.Detach,
		began: time.Now(), log: log, report: reportReader, done: make(chan struct{}),
	}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = log.writer(), log.writer()
	p.cmd.ExtraFiles = []*os.File{reportWriter}
	// Matters only if the log is copied through a pipe: do not wait for other processes that have it open.
	p.cmd.WaitDelay = exitGrace
	if o.Detach {
		// In its own session, it survives the terminal it was started from.
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	} else {
		// Ctrl-C is for this process, which then stops the control plane in order.
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		lifelineReader, lifelineWriter, err := os.Pipe()
		if err != nil {
			reportReader.Close()
			return nil, fmt.Errorf("creating the lifeline pipe: %w", err)
		}
		defer lifelineReader.Close()
		p.lifeline = lifelineWriter
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, lifelineReader)
	}
	if err := p.cmd.Start(); err != nil {
		reportReader.Close()
		if p.lifeline != nil {
			p.lifeline.Close()
		}
		return nil, fmt.Errorf("running the control plane: %w", err)
	}
	private := ""
	if o.Name == "" {
		private = dir
	}
	go p.wait(private)
	return p, nil
}

func serveArgs(dir string, o Options) []string {
	args := []string{"serve", "--dir", dir, "--report-fd", strconv.Itoa(reportFD)}
	if !o.Detach {
		args = append(args, "--lifeline-fd", strconv.Itoa(lifelineFD))
	}
	if o.Nodes > 0 {
		args = append(args, "--nodes", strconv.Itoa(o.Nodes))
	}
	if o.Port > 0 {
		args = append(args, "--port", strconv.Itoa(o.Port))
	}
	if o.Ephemeral || o.Name == "" {
		args = append(args, "--ephemeral")
	}
	if o.Durable {
		args = append(args, "--durable")
	}
	if o.From != "" {
		args = append(args, "--from", absolute(o.From))
	}
	if o.Replace {
		args = append(args, "--replace")
	}
	if o.History > 0 {
		args = append(args, "--history", o.History.String())
	}
	if o.Kubernetes != "" {
		args = append(args, "--kubernetes", o.Kubernetes)
	}
	if o.AdmissionPlugins != nil {
		args = append(args, "--admission-plugins", strings.Join(o.AdmissionPlugins, ","))
	}
	return args
}

// wait holds the lifeline until the process has ended. Were it not referred to from here, the garbage
// collector would close it as soon as the caller forgets the Cluster.
func (p *process) wait(private string) {
	p.exit = p.cmd.Wait()
	if p.lifeline != nil {
		p.lifeline.Close()
	}
	if private != "" {
		// The process removes its own folder. If it was killed, the folder must be removed here.
		_ = os.RemoveAll(private)
	}
	close(p.done)
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// awaitExit waits for a process that is about to exit, and kills it if it does not.
func (p *process) awaitExit(grace time.Duration) {
	if !p.endsWithin(grace) {
		p.kill()
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// end stops the process and ignores its result.
func (p *process) end(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.awaitExit(grace)
}

// giveUp is like end, for a start that the caller has canceled. If the process must be killed, the cluster counts as stopped: Dead
// means that it ended for another reason.
func (p *process) giveUp(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if p.endsWithin(grace) {
		return
	}
	p.kill()
	_ = clearLock(filepath.Join(p.cmd.Dir, lockFileName)) // which is gone if the process had just cleaned up
}

// stop returns nil if the process has already ended. Cluster.Err returns the reason.
func (p *process) stop(timeout time.Duration) error {
	if p.ended() {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending SIGTERM to the control plane%s: %w", pidSuffix(p.cmd.Process.Pid), err)
	}
	if !p.endsWithin(timeout) {
		if p.detached {
			return tooSlow(p.cmd.Process.Pid, timeout)
		}
		p.kill()
		return fmt.Errorf("the control plane did not stop within %v after SIGTERM and was killed%s", timeout, p.log.hint())
	}
	if p.exit != nil {
		return fmt.Errorf("the control plane did not stop cleanly: %w%s", p.exit, p.log.hint())
	}
	return nil
}

func tooSlow(pid int, timeout time.Duration) error {
	return fmt.Errorf("the control plane%s did not stop within %v after SIGTERM; wait, or kill it with %q (acknowledged writes are kept)",
		pidSuffix(pid), timeout, fmt.Sprintf("kill -9 %d", pid))
}

// stopByLock stops a control plane that is not a child of this process, with SIGTERM or with another signal that stops
// it. If it is already stopping, stopByLock only waits.
func stopByLock(dir string, how syscall.Signal, timeout time.Duration) error {
	lock, err := openLock(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// Opened once and for all: an ephemeral cluster unlinks the file some time before it has ended.
	defer lock.Close()

	deadline := time.Now().Add(timeout)
	signalled := 0
	for {
		who, err := lock.look()
		if err != nil {
			return err
		}
		if !who.held {
			return uncleanEnd(dir, signalled)
		}
		if signalled != 0 && who.pid != 0 && who.pid != signalled {
			// It ended, and another process has started meanwhile, which must not be stopped.
			return nil
		}
		if signalled == 0 && who.pid != 0 {
			if signalled, err = terminateHolder(lock, who.pid, how); err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			if signalled == 0 {
				return fmt.Errorf("a process holds %s but has not written its pid for %v; find it with %q",
					lock.f.Name(), timeout, "fuser "+lock.f.Name())
			}
			return tooSlow(signalled, timeout)
		}
		time.Sleep(lockPoll)
	}
}

// uncleanEnd returns an error if the process of that pid has ended but its entry in the lock file is still there. The
// entry of an ephemeral cluster is removed with its folder.
func uncleanEnd(dir string, pid int) error {
	if pid == 0 {
		return nil
	}
	who, err := lookAt(dir)
	if err != nil || who.held || who.pid != pid {
		return err
	}
	return fmt.Errorf("the control plane (pid %d) ended without a clean stop (acknowledged writes are kept); log: %s",
		pid, filepath.Join(dir, logFileName))
}

// terminateHolder sends a signal to the process that holds the lock, unless it is already stopping, and returns its
// pid, or 0 if it no longer holds the lock. The handle is taken before the lock is checked again. On Linux, where a handle is more
// than a number, a reused pid therefore cannot be hit.
func terminateHolder(lock *lockFile, pid int, how syscall.Signal) (int, error) {
	handle, err := os.FindProcess(pid)
	if err != nil {
		return 0, fmt.Errorf("finding process %d: %w", pid, err)
	}
	defer handle.Release()
	who, err := lock.look()
	if err != nil || !who.held || who.pid != pid {
		return 0, err
	}
	if who.stopping {
		return pid, nil
	}
	if err := handle.Signal(how); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, fmt.Errorf("sending SIGTERM to the control plane (pid %d): %w", pid, err)
	}
	return pid, nil
}
