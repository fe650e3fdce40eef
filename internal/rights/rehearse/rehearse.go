// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rehearse runs an operator with certain rights while its samples are created, changed and deleted, and
// reports refused requests.
package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/lens"
)

const (
	// DefaultQuiet is how long an operator sends nothing until it is taken to have finished.
	DefaultQuiet = 3 * time.Second
	// DefaultPatience is how long it may take for that in each act.
	DefaultPatience = time.Minute
	// stopGrace is how long it may take to end.
	stopGrace = 10 * time.Second
)

// Options configures a rehearsal.
type Options struct {
	// Upstream is the API server, with the rights that are tried.
	Upstream *rest.Config
	// Namespace is the one of the context in the operator's kubeconfig.
	Namespace string
	// Start starts the operator behind the lens, with a private folder for its files. If it is nil, Command is run.
	Start func(ctx context.Context, proxy *lens.Lens, dir string) (Process, error)
	// Command runs the operator in Dir, and Log receives its output.
	Command []string
	Dir     string
	Env     []string
	Log     io.Writer
	// Recording is the file to write, with this header.
	Recording string
	Header    lens.Header
	Quiet     time.Duration
	Patience  time.Duration
	// Acts are what happens to the operator's objects, one after the other.
	Acts []Act
	// Done is called after each act.
	Done func(Outcome)
}

// Process is a running operator.
type Process interface {
	// Ended is closed when it has ended, and Err returns how.
	Ended() <-chan struct{}
	Err() error
	// Stop stops it, and returns when it has ended.
	Stop()
}

// Act is something that is done to the operator's objects.
type Act struct {
	Name string
	Do   func(context.Context) error
}

// Outcome is the result of an act.
type Outcome struct {
	Act      string        `json:"act"`
	Requests int           `json:"requests"`
	Refused  []Refusal     `json:"refused,omitempty"`
	Took     time.Duration `json:"nanoseconds"`
	// Busy means that the operator had not finished in time.
	Busy bool `json:"busy,omitempty"`
}

// Refusal is a request that was refused because of a missing right.
type Refusal struct {
	Verb     string        `json:"verb"`
	Resource lens.Resource `json:"resource"`
	Message  string        `json:"message"`
}

// EndedError means that the operator has ended before the last act.
type EndedError struct {
	Act string
	Err error
}

func (e *EndedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("the operator exited during %q", e.Act)
	}
	return fmt.Sprintf("the operator ended during %q: %v", e.Act, e.Err)
}

func (e *EndedError) Unwrap() error { return e.Err }

// Run rehearses. It returns the acts that were finished, even if one fails.
func Run(ctx context.Context, o Options) (outcomes []Outcome, err error) {
	if o.Quiet == 0 {
		o.Quiet = DefaultQuiet
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	proxy, err := lens.Start(context.WithoutCancel(ctx), lens.Options{Upstream: o.Upstream, Namespace: o.Namespace})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "opdock-rehearse-")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("creating a directory for the kubeconfig: %w", err), proxy.Close())
	}
	defer os.RemoveAll(dir)
	recording, err := lens.Record(proxy.Stream(), o.Recording, o.Header, 0)
	if err != nil {
		return nil, errors.Join(err, proxy.Close())
	}
	defer func() { err = errors.Join(err, proxy.Close(), recording.Close()) }()
	operator, err := o.begin(ctx, proxy, dir)
	if err != nil {
		return nil, err
	}
	defer operator.Stop()
	watching := newWatching(proxy.Stream())
	defer watching.stop()
	for _, act := range append([]Act{{Name: "start", Do: func(context.Context) error { return nil }}}, o.Acts...) {
		outcome, err := o.perform(ctx, act, operator, watching)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, outcome)
		if o.Done != nil {
			o.Done(outcome)
		}
	}
	return outcomes, nil
}

// perform does something, and waits until the operator has nothing more to do.
func (o *Options) perform(ctx context.Context, act Act, operator Process, watching *watching) (Outcome, error) {
	began := time.Now()
	outcome := Outcome{Act: act.Name}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Patience, errPatience)
	defer cancel()
	if err := act.Do(ctx); err != nil {
		if errors.Is(context.Cause(ctx), errPatience) {
			// What it was refused may be why.
			return outcome, fmt.Errorf("%s: not finished after %s%s: %w", act.Name, o.Patience, watching.refusals(), err)
		}
		return outcome, fmt.Errorf("%s: %w", act.Name, err)
	}
	quiet := time.NewTimer(o.Quiet)
	defer quiet.Stop()
	for settled := false; !settled; {
		select {
		case <-watching.active:
			quiet.Reset(o.Quiet)
		case <-quiet.C:
			settled = watching.started()
			quiet.Reset(o.Quiet)
		case <-operator.Ended():
			return outcome, &EndedError{Act: act.Name, Err: operator.Err()}
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errPatience) {
				return outcome, ctx.Err()
			}
			if !watching.started() {
				return outcome, fmt.Errorf("the operator has sent no request for %s: check whether it uses KUBECONFIG", o.Patience)
			}
			outcome.Busy, settled = true, true
		}
	}
	outcome.Requests, outcome.Refused = watching.take()
	outcome.Took = time.Since(began)
	return outcome, nil
}

var errPatience = errors.New("patience")

// watching counts what an operator does.
type watching struct {
	// active receives something when the operator has done something.
	active chan struct{}
	stop   context.CancelFunc

	mutex    sync.Mutex
	any      bool
	requests int
	refused  []Refusal
}

func newWatching(stream *lens.Stream) *watching {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watching{active: make(chan struct{}, 1), stop: cancel}
	go func() {
		for event, lost := range stream.Follow(ctx, 0) {
			if w.count(event) || lost > 0 {
				select {
				case w.active <- struct{}{}:
				default:
				}
			}
		}
	}()
	return w
}

// neverEnds reports whether a resource changes constantly: leader election, and the heartbeats of nodes.
func neverEnds(r lens.Resource) bool { return r.Resource == "leases" || r.Resource == "nodes" }

// count reports whether an event shows that the operator is busy.
func (w *watching) count(e *lens.Event) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch {
	case e.Delivery != nil:
		return e.Delivery.Type != "BOOKMARK" && !neverEnds(e.Delivery.Resource)
	case e.Request == nil:
		return e.Reconcile != nil
	}
	r := e.Request
	w.any = true
	if r.Verb != "watch" || r.Open {
		w.requests++
	}
	if r.Status == http.StatusForbidden {
		w.refused = append(w.refused, Refusal{Verb: r.Verb, Resource: r.Resource, Message: r.Message})
	}
	return !neverEnds(r.Resource)
}

func (w *watching) started() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.any
}

func (w *watching) refusals() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.refused) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d requests were refused, the last: %s)", len(w.refused), w.refused[len(w.refused)-1].Message)
}

// take returns what was counted since the last time.
func (w *watching) take() (requests int, refused []Refusal) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	requests, refused = w.requests, w.refused
	w.requests, w.refused = 0, nil
	return requests, refused
}

// process is the operator.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // set before ended is closed
}

// begin starts the operator, in the time that an act may take.
func (o *Options) begin(ctx context.Context, proxy *lens.Lens, dir string) (Process, error) {
	if o.Start == nil {
		return o.start(proxy, dir)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	return o.Start(ctx, proxy, dir)
}

func (o *Options) start(proxy *lens.Lens, dir string) (*process, error) {
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
	cmd.Env = append(slices.Clone(o.Env), "KUBECONFIG="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it starts ends with it
	cmd.WaitDelay = stopGrace
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Command[0], err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) Ended() <-chan struct{} { return p.ended }
func (p *process) Err() error             { return p.err }

// Stop stops the operator, and returns when it has ended.
func (p *process) Stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) // it may be gone already
	select {
	case <-p.ended:
	case <-time.After(stopGrace):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.ended
	}
}
