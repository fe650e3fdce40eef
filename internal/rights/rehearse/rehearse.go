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
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/scratch"
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
	// Recording is the file to write, with this header, whose Identity is the user that Upstream acts as.
	Recording string
	Header    lens.Header
	Quiet     time.Duration
	Patience  time.Duration
	// Acts are what happens to the operator's objects, one after the other.
	Acts []Act
	// Subjects are the objects that exist after an act and that the operator is to reconcile; nil if that is not judged.
	Subjects func() []Subject
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
	// Lacks receives something when the operator is found to lack another kind. Complete supplies it with the CRDs of such kinds, or with
	// a configuration as in a pod, and starts it again. It returns false if there is nothing to supply.
	Lacks() <-chan struct{}
	Complete(ctx context.Context) (bool, error)
	// Lacking returns the kinds that it lacks, and Idle the controllers that have not started, as far as that is known.
	Lacking() []string
	Idle() []string
}

// Act is something that is done to the operator's objects.
type Act struct {
	Name string
	Do   func(context.Context) error
}

// Outcome is the result of an act.
type Outcome struct {
	Act      string    `json:"act"`
	Requests int       `json:"requests"`
	Refused  []Refusal `json:"refused,omitempty"`
	// Denied are requests that were refused although the right was there, for example by a webhook or a quota, or because another
	// user, as which the operator has sent them, lacks a right.
	Denied []Refusal     `json:"denied,omitempty"`
	Took   time.Duration `json:"nanoseconds"`
	// Busy means that the operator had not finished in time.
	Busy bool `json:"busy,omitempty"`
}

// Refusal is a request that was refused.
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
func Run(ctx context.Context, o Options) (result Result, err error) {
	if o.Quiet == 0 {
		o.Quiet = DefaultQuiet
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	proxy, err := lens.Start(context.WithoutCancel(ctx), lens.Options{Upstream: o.Upstream, User: o.Header.Identity, Namespace: o.Namespace})
	if err != nil {
		return result, err
	}
	dir, remove, err := scratch.Make("opdock-rehearse-")
	if err != nil {
		return result, errors.Join(fmt.Errorf("creating a directory for the kubeconfig: %w", err), proxy.Close())
	}
	defer remove()
	recording, err := lens.Record(proxy.Stream(), o.Recording, o.Header, 0)
	if err != nil {
		return result, errors.Join(err, proxy.Close())
	}
	defer func() { err = errors.Join(err, proxy.Close(), recording.Close()) }()
	operator, err := o.begin(ctx, proxy, dir)
	if err != nil {
		return result, err
	}
	defer operator.Stop()
	s := &stage{Options: &o, operator: operator, watching: newWatching(proxy.Stream()), strangers: proxy.Strangers}
	defer s.watching.stop()
	for _, act := range append([]Act{{Name: "start", Do: func(context.Context) error { return nil }}}, o.Acts...) {
		outcome, err := s.perform(ctx, act)
		if err != nil {
			return result, err
		}
		result.Acts = append(result.Acts, outcome)
		if o.Done != nil {
			o.Done(outcome)
		}
	}
	result.Idle, result.Strangers = s.idle(), proxy.Strangers()
	return result, nil
}

// stage is a rehearsal that is under way.
type stage struct {
	*Options

	operator Process
	watching *watching
	// strangers is how many requests came without the credential of the operator so far.
	strangers func() uint64
	// waited says that the operator had all the time of an act to begin its work.
	waited bool
}

// perform does something, and waits until the operator has nothing more to do.
func (s *stage) perform(parent context.Context, act Act) (Outcome, error) {
	began := time.Now()
	outcome := Outcome{Act: act.Name}
	ctx, cancel := context.WithTimeoutCause(parent, s.Patience, errPatience)
	defer cancel()
	if err := act.Do(ctx); err != nil {
		if errors.Is(context.Cause(ctx), errPatience) {
			// What it was refused may be why.
			return outcome, fmt.Errorf("%s: not finished after %s%s: %w", act.Name, s.Patience, s.watching.refusals(), err)
		}
		return outcome, fmt.Errorf("%s: %w", act.Name, err)
	}
	quiet, over := time.NewTimer(s.Quiet), time.NewTimer(s.Patience-time.Since(began))
	defer quiet.Stop()
	defer over.Stop()
	for settled := false; !settled; {
		select {
		case <-s.watching.active:
			quiet.Reset(s.Quiet)
		case <-quiet.C:
			settled = s.hasSettled(time.Now())
			quiet.Reset(s.Quiet)
		case <-s.operator.Lacks():
			again, err := s.complete(parent, act)
			if err != nil {
				return outcome, err
			}
			if again {
				quiet.Reset(s.Quiet)
				over.Reset(s.Patience)
			}
		case <-s.operator.Ended():
			how := s.operator.Err()
			again, err := s.complete(parent, act) // it may have ended because it lacks a kind
			if err != nil {
				return outcome, err
			}
			if !again {
				return outcome, &EndedError{Act: act.Name, Err: how}
			}
			quiet.Reset(s.Quiet)
			over.Reset(s.Patience)
		case <-over.C:
			if !s.watching.started() {
				if strangers := s.strangers(); strangers > 0 {
					return outcome, fmt.Errorf("the operator reaches the cluster without the credential in KUBECONFIG, so %d requests were refused: let it use the whole file", strangers)
				}
				return outcome, fmt.Errorf("the operator has sent no request for %s: check whether it uses KUBECONFIG", s.Patience)
			}
			outcome.Busy, settled = !s.mayBegin(), true
			s.waited = true
		case <-parent.Done():
			return outcome, parent.Err()
		}
	}
	outcome.Requests, outcome.Refused, outcome.Denied = s.watching.take()
	outcome.Took = time.Since(began)
	return outcome, nil
}

// complete gives the operator the kinds that it lacks, in the time that an act may take.
func (s *stage) complete(ctx context.Context, act Act) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	if again, err = s.operator.Complete(ctx); err != nil {
		return again, fmt.Errorf("%s: starting the operator again with what it needs: %w", act.Name, err)
	}
	return again, nil
}

// hasSettled reports whether an operator that is quiet has finished.
func (s *stage) hasSettled(now time.Time) bool {
	return s.watching.started() && !s.mayBegin() && !s.watching.awaitsOwners(now)
}

// mayBegin reports whether an operator that is quiet has not begun its work, and nothing is known that keeps it from that. Being
// quiet does not mean then that it has finished.
func (s *stage) mayBegin() bool {
	if s.waited || s.watching.wasRefused() || len(s.operator.Lacking()) > 0 {
		return false
	}
	if len(s.operator.Idle()) > 0 {
		return true
	}
	if s.Subjects == nil {
		return false
	}
	// Samples that do not exist are not worth waiting for.
	_, all := s.watching.untouched(slices.DeleteFunc(slices.Clone(s.Subjects()), func(one Subject) bool { return one.LeftOut }))
	return all
}

func (s *stage) untouched() (kinds []Kind, all bool) {
	if s.Subjects == nil {
		return nil, false
	}
	return s.watching.untouched(s.Subjects())
}

var errPatience = errors.New("patience")

// begin starts the operator, in the time that an act may take.
func (o *Options) begin(ctx context.Context, proxy *lens.Lens, dir string) (Process, error) {
	if o.Start == nil {
		return o.runCommand(proxy, dir)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	return o.Start(ctx, proxy, dir)
}
