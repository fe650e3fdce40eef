// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/instrument"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/project"
)

// Operator is the operator of a project. It is built once and can be started any number of times, also concurrently,
// each time on another cluster. It runs as in a session of opdock dev.
type Operator struct {
	options   OperatorOptions
	builder   *builder
	manifests manifests
	called    usage
	// needed are kinds of other modules that Install installs.
	needed []project.Wanted
	// pod is true once the operator is known to read only the in-cluster configuration.
	pod atomic.Bool
	// unserved is shared by all processes: what one does not serve, the others do not, either.
	unserved unserved
}

// OperatorOptions selects the operator.
type OperatorOptions struct {
	Project *project.Project
	// Main is the pattern of the operator's main package.
	Main  string
	Build BuildOptions
	// Program is a binary to run instead of one that is built. Its reconciles are not marked.
	Program string
	// Arguments are the user's arguments for the operator. They take precedence.
	Arguments []string
	Env       []string
	// StateDir is a private folder for the binary.
	StateDir string
	// Progress is called with the current activity, and Say with messages for the user.
	Progress, Say func(string)
}

// NewOperator reads the project's manifests and builds its operator, with marked reconciles if possible. Reading
// manifests of other modules needs a cluster to find which kinds it already has.
func NewOperator(ctx context.Context, o OperatorOptions, admin *rest.Config) (*Operator, error) {
	op := &Operator{options: o}
	op.builder = &builder{
		dir: o.Project.Dir, module: o.Project.Module, main: o.Main, output: filepath.Join(o.StateDir, "bin", o.Project.Name), env: o.Env,
		BuildOptions: o.Build, progress: o.Progress,
	}
	op.builder.say = o.Say
	op.builder.instrument = &instrument.Project{Dir: o.Project.Dir, Env: o.Env, StateDir: o.StateDir}
	reading, err := op.session(o.StateDir, admin)
	if err != nil {
		return nil, err
	}
	if op.manifests, err = reading.readManifests(ctx); err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	if err := op.build(ctx); err != nil {
		return nil, err
	}
	var deployed []string
	if o.Program == "" {
		deployed = argumentsIn(op.manifests.all)
	}
	if op.called, err = askUsage(ctx, op.builder.output, o.Project.Dir, o.Env, deployed, o.Arguments); err != nil {
		return nil, err
	}
	return op, nil
}

func (op *Operator) build(ctx context.Context) error {
	if op.options.Program != "" {
		op.builder.output = op.options.Program
		return nil
	}
	_, err := op.builder.build(ctx)
	var broken *buildError
	if errors.As(err, &broken) {
		return fmt.Errorf("building the operator:\n%s", strings.Join(broken.lines(), "\n"))
	}
	return err
}

// session is a session that only applies, lays out files and starts processes: it has no loop.
func (op *Operator) session(dir string, admin *rest.Config) (*Session, error) {
	o := &op.options
	s := &Session{
		Options: Options{Project: o.Project, Main: o.Main, Arguments: o.Arguments, Env: o.Env, StateDir: dir, Cluster: Cluster{Config: admin, CallsBack: true}, Screen: sayOnly(o.Say), Observer: unobserved{}},
		builder: op.builder, manifests: op.manifests, unserved: &op.unserved,
	}
	var err error
	if s.applier, err = newApplier(admin, apply.Set{Project: o.Project.Name, Verb: apply.VerbDev, Namespace: apply.InventoryNamespace(true, "default")}); err != nil {
		return nil, err
	}
	s.applier.options.Namespace, s.applier.options.MakeNamespaces = "default", true
	return s, nil
}

// Marked reports whether the operator marks its reconciles.
func (op *Operator) Marked() bool { return op.builder.isInstrumented() }

// Digest identifies the build.
func (op *Operator) Digest() string { return hex.EncodeToString(op.builder.built[:8]) }

// Identity is the identity of the operator; nil for an administrator.
func (op *Operator) Identity() *project.Identity { return op.manifests.identity }

// Definitions are the CRDs that it brings.
func (op *Operator) Definitions() []*unstructured.Unstructured { return op.manifests.definitions }

// Serves reports whether the API server calls webhooks of the operator. That it leaves them out is known once it was started.
func (op *Operator) Serves() bool {
	leftOut := op.manifests.leavesWebhooksOut() && op.unserved.isKnown()
	return op.manifests.serves() && !leftOut
}

// Exclusive reports whether only one process of it can run at a time, because its webhook port cannot be set.
func (op *Operator) Exclusive() bool {
	return op.manifests.serves() && op.called.plan(surroundings{}).fixedPort
}

// Install applies what the operator needs on a cluster: its CRDs, its service account with roles, and its settings.
func (op *Operator) Install(ctx context.Context, admin *rest.Config) error {
	dir, err := os.MkdirTemp(op.options.StateDir, "install-")
	if err != nil {
		return fmt.Errorf("creating a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	s, err := op.session(dir, admin)
	if err != nil {
		return err
	}
	if s.certificates, err = makeCertificates(dir, time.Now()); err != nil {
		return err
	}
	var round Round
	var todo work
	if err := s.applyIdentity(ctx, &round); err != nil {
		return err
	}
	if err := s.applyBelongings(ctx); err != nil {
		return err
	}
	if err := s.applyDefinitions(ctx, &round, &todo); err != nil {
		return err
	}
	s.installMissing(ctx, op.needed)
	return ctx.Err()
}

// Place is where an operator is started.
type Place struct {
	// Dir is a private folder for this process.
	Dir string
	// Admin is the configuration for preparing the cluster. The operator itself connects through the lens.
	Admin *rest.Config
	Lens  *lens.Lens
	// Line receives the operator's output.
	Line func(string)
}

// Started is a process of the operator.
type Started struct {
	operator *Operator
	session  *Session
	process  *process
	line     func(string) // receives the output
}

// Start starts the operator, and returns when it is seen to do its work.
func (op *Operator) Start(ctx context.Context, at Place) (*Started, error) {
	started, err := op.place(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := started.Again(ctx, at.Line); err != nil {
		started.Stop() // it may wait for something
		return nil, err
	}
	return started, nil
}

// place prepares a process.
func (op *Operator) place(ctx context.Context, at Place) (*Started, error) {
	s, err := op.session(at.Dir, at.Admin)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(at.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating a directory for the operator: %w", err)
	}
	s.lens = &lensing{proxy: at.Lens}
	if err := s.ports.renew(); err != nil {
		return nil, err
	}
	if s.certificates, err = makeCertificates(at.Dir, time.Now()); err != nil {
		return nil, err
	}
	s.plan = op.called.plan(surroundings{
		kubeconfig: s.KubeconfigPath(), probe: net.JoinHostPort(loopback, strconv.Itoa(s.ports.probe)), webhookPort: s.ports.webhooks, certificate: s.certificates.dir,
	})
	if err := s.layOut(at.Lens); err != nil {
		return nil, err
	}
	if err := s.leadHere(ctx); err != nil {
		return nil, err
	}
	if op.pod.Load() {
		s.configureAsPod()
	}
	return &Started{operator: op, session: s}, nil
}

// layOut writes the files that the operator finds.
func (s *Session) layOut(through *lens.Lens) error {
	kubeconfig, err := through.Kubeconfig()
	if err != nil {
		return err
	}
	if err := writePrivate(s.KubeconfigPath(), kubeconfig); err != nil {
		return fmt.Errorf("writing the operator's kubeconfig: %w", err)
	}
	return makeHome(s.homePath(), lastValue(s.Env, "HOME"), s.KubeconfigPath())
}

// leadHere points the conversion webhooks of the cluster, which may be a fork, to this process, and removes
// admission webhooks until it serves them.
func (s *Session) leadHere(ctx context.Context) error {
	if !s.manifests.serves() {
		return nil
	}
	if err := s.applier.remove(ctx, s.manifests.webhooks); err != nil {
		return err
	}
	var round Round
	var todo work
	return s.applyDefinitions(ctx, &round, &todo)
}

// Again starts the operator in the same place after it has ended.
func (o *Started) Again(ctx context.Context, line func(string)) error {
	err := o.begin(ctx, line)
	var reached stage
	if err == nil {
		reached = o.process.awaitReady(ctx, o.session.plan.probe)
	}
	if ended := err == nil && reached == "" || errors.As(err, new(*EndedError)); ended && ctx.Err() == nil && o.session.becomePod() {
		o.operator.pod.Store(true)
		return o.Again(ctx, line)
	}
	switch {
	case err != nil:
		return err
	case reached == "" && ctx.Err() != nil:
		return ctx.Err()
	case reached == "":
		return o.ended()
	case reached == lacking:
		return o.lacking()
	}
	return nil
}

// lacking is the error for an operator that waits for kinds.
func (o *Started) lacking() error {
	return fmt.Errorf("%w; add its CRD to a folder of the project", &LackingError{o.process.ready.missing()})
}

// begin starts the process, and configures its webhooks on the cluster.
func (o *Started) begin(ctx context.Context, line func(string)) error {
	s := o.session
	o.line = line
	if err := s.takeCertificates(ctx); err != nil {
		return err
	}
	files, err := s.layOutFiles()
	if err != nil {
		return err
	}
	visible, _ := s.tryMounts(files)
	s.releaseLease(ctx, s.process)
	s.lens.begin(recordedAs(s.manifests.identity), s.builder.isInstrumented())
	p, err := startProcess(processSpec{binary: s.builder.output, dir: s.Project.Dir, args: s.plan.args, env: s.environment(), mounts: visible, line: line})
	if err != nil {
		return err
	}
	s.process, o.process = p, p
	var round Round
	var todo work
	if err := s.configureWebhooks(ctx, &round, &todo); err != nil {
		if errors.Is(err, errEnded) {
			return o.ended()
		}
		if errors.As(err, new(*notServedError)) {
			return &NotServedError{Err: err, Tail: o.process.tail()}
		}
		return err
	}
	return nil
}

// NotServedError is an operator that runs, and does not serve its webhooks.
type NotServedError struct {
	Err  error
	Tail []string
}

func (e *NotServedError) Error() string {
	return e.Err.Error() + "; the end of the operator's log:\n  " + strings.Join(e.Tail, "\n  ")
}

func (e *NotServedError) Unwrap() error { return e.Err }

// EndedError is an operator that ended before it did its work.
type EndedError struct {
	How  string
	Tail []string
	// Lacks are the kinds that its log reports as missing; nil if there are none.
	Lacks *LackingError
}

func (e *EndedError) Unwrap() error {
	if e.Lacks == nil {
		return nil
	}
	return e.Lacks
}

func (e *EndedError) Error() string {
	if len(e.Tail) == 0 {
		return "the operator " + e.How + ", and printed nothing before"
	}
	return "the operator " + e.How + ":\n  " + strings.Join(e.Tail, "\n  ")
}

// Advice returns what to do about those lines of the log that do not say it.
func (e *EndedError) Advice() (all []string) {
	known := newAdvice(nil)
	for _, line := range e.Tail {
		if text := known.about(line); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

func (o *Started) ended() error {
	ended := &EndedError{How: o.process.how(), Tail: o.process.tail()}
	if kinds := o.process.ready.missing(); len(kinds) > 0 {
		ended.Lacks = &LackingError{kinds}
	}
	return ended
}

// Kill ends the operator like a crash, and returns when it has ended.
func (o *Started) Kill() {
	_ = syscall.Kill(-o.process.cmd.Process.Pid, syscall.SIGKILL) // it may have ended already
	<-o.process.done
}

// Done is closed when the process has ended.
func (o *Started) Done() <-chan struct{} { return o.process.done }

// How describes how it ended, and Tail returns the end of its log.
func (o *Started) How() string { return o.process.how() }

// Tail returns the end of its log.
func (o *Started) Tail() []string { return o.process.tail() }

// sayOnly is a screen that shows only messages.
type sayOnly func(string)

func (s sayOnly) Say(text string) { s(text) }
func (sayOnly) Busy(string)       {}
func (sayOnly) Round(Round)       {}
func (sayOnly) Log(string)        {}
