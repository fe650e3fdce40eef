// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/lens"
)

// Options configures a trace.
type Options struct {
	// Upstream is the API server and the identity that the program acts as. Identity is the name of that user, or
	// lens.Administrator.
	Upstream  *rest.Config
	Near      bool // see lens.Options
	Identity  string
	Namespace string
	// Command is the program with its arguments.
	Command []string
	Env     []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Dir is a private folder for the kubeconfig.
	Dir string
	// Recording is the file to write, with this header.
	Recording string
	Header    lens.Header
	// See receives each event in its order, and how many before it were lost.
	See func(e *lens.Event, lost uint64)
	// Unused is called once if the program has sent nothing for a while, or until its end. Refused is the number of
	// requests that arrived with another credential than that of the kubeconfig.
	Unused func(refused uint64)

	// record begins the recording; tests replace it.
	record func(*lens.Stream) (io.Closer, error)
}

// unusedAfter is how long a program may take to its first request before it is taken for one that ignores its kubeconfig.
const unusedAfter = 10 * time.Second

// killAfter is how long a program may take to end after the signal that the user sent.
const killAfter = 10 * time.Second

// Result is how it went.
type Result struct {
	Totals lens.Totals
	// ExitCode is the program's, or 128 and the number of the signal that ended it, as in a shell.
	ExitCode int
	// Strangers is how many requests arrived with another credential than that of the kubeconfig.
	Strangers uint64
	// Incomplete is why events are missing in the recording, nil if none are.
	Incomplete error
}

// Run runs a program behind a lens until it ends. Interrupting the context interrupts the program.
func Run(ctx context.Context, o Options) (result Result, err error) {
	proxy, err := lens.Start(context.WithoutCancel(ctx), lens.Options{Upstream: o.Upstream, Near: o.Near, User: o.Identity, Namespace: o.Namespace})
	if err != nil {
		return result, err
	}
	defer proxy.Close()
	kubeconfig, err := proxy.Kubeconfig()
	if err != nil {
		return result, err
	}
	path := filepath.Join(o.Dir, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return result, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	stream := proxy.Stream()
	if o.record == nil {
		o.record = func(stream *lens.Stream) (io.Closer, error) { return lens.Record(stream, o.Recording, o.Header, 0) }
	}
	recording, err := o.record(stream)
	if err != nil {
		return result, err
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for event, lost := range stream.Follow(context.Background(), 0) {
			o.See(event, lost)
		}
	})
	proxy.Note(lens.Event{Process: &lens.Process{Started: true, Identity: o.Identity}})
	how, code, err := o.run(ctx, path, proxy)
	proxy.Note(lens.Event{Process: &lens.Process{Ended: true, How: how}})
	err = errors.Join(err, proxy.Close())
	reading.Wait()
	return Result{Totals: stream.Totals(), ExitCode: code, Strangers: proxy.Strangers(), Incomplete: recording.Close()}, err
}

// run starts the program and waits for its end.
func (o *Options) run(ctx context.Context, kubeconfig string, proxy *lens.Lens) (how string, code int, err error) {
	cmd := exec.CommandContext(ctx, o.Command[0], o.Command[1:]...)
	cmd.Env = slices.Concat(o.Env, lens.Environment(kubeconfig))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	cmd.Cancel = func() error {
		terminate := func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		if isCtrlC(ctx) {
			// In case that only this process was interrupted, or that the program ignores it.
			time.AfterFunc(killAfter*3/4, func() { _ = terminate() }) // it may have ended
			return nil
		}
		return terminate()
	}
	cmd.WaitDelay = killAfter
	if err := cmd.Start(); err != nil {
		return "did not start", 1, fmt.Errorf("starting %s: %w", o.Command[0], err)
	}
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		timer := time.NewTimer(unusedAfter)
		defer timer.Stop()
		select {
		case <-proxy.Used():
			return
		case <-ended:
		case <-timer.C:
		}
		select {
		case <-proxy.Used():
		default:
			o.Unused(proxy.Strangers())
		}
	})
	err = cmd.Wait()
	close(ended)
	watching.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return fmt.Sprintf("was ended by signal %d (%s)", status.Signal(), status.Signal()), 128 + int(status.Signal()), nil
		}
		return fmt.Sprintf("exited with status %d", code), code, nil
	case err != nil && ctx.Err() == nil:
		return "failed", 1, fmt.Errorf("running %s: %w", strings.Join(o.Command, " "), err)
	}
	return "exited with status 0", 0, nil
}
