// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve puts the parts of the control plane together into one process:
// etcd, the API server, the controllers, the scheduler and the simulated nodes,
// started so that as much as possible happens at the same time, and stopped in
// the reverse order of who needs whom.
package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/opdock/opdock/controlplane/internal/early"
	"github.com/opdock/opdock/controlplane/internal/etcd"
	"github.com/opdock/opdock/controlplane/internal/fault"
	"github.com/opdock/opdock/controlplane/internal/pki"
	"github.com/opdock/opdock/controlplane/internal/state"
)

// Options are the flags of `opdock-controlplane serve`.
type Options struct {
	Dir       string
	Nodes     int
	Port      int
	Ephemeral bool
	Durable   bool
	// ControllerQPS limits each controller's requests; 0 does not.
	ControllerQPS float32
	// From is a snapshot file, or the state folder of a cluster that runs, whose
	// objects a new cluster starts with.
	From string
	// Replace lets From replace the objects of an existing cluster.
	Replace bool
	// History is how long old revisions can be read at least; 0 is upstream's default.
	History time.Duration
	// AdmissionPlugins are enabled beside the default ones; nil: those that the
	// cluster had.
	AdmissionPlugins []string
	// Emulated is the version of Kubernetes to emulate; empty: the one that the
	// cluster had.
	Emulated string
	// Kubernetes is the version that is about to run.
	Kubernetes string
	Report     *Reporter
}

// ErrRestart is the cause of a context that ends because the cluster is about to start again. The state of an
// ephemeral cluster then stays.
var ErrRestart = errors.New("the cluster is about to start again")

// Run brings the cluster up, reports that it is ready, and keeps it until ctx
// ends or a part of it fails. It returns nil after a clean stop.
func Run(ctx context.Context, o Options) (err error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return fmt.Errorf("state folder %q: %w", o.Dir, err)
	}
	if o.From != "" {
		if o.From, err = filepath.Abs(o.From); err != nil {
			return fmt.Errorf("source %q: %w", o.From, err)
		}
	}
	folder, err := state.Open(dir, o.Kubernetes)
	if err != nil {
		return err
	}
	folder.Durable = o.Durable
	plane := &plane{options: o, folder: folder, report: o.Report}
	err = plane.prepare(ctx)
	if err == nil {
		o.Report.Progress("state", "state is in "+dir)
		err = plane.start(ctx)
	}
	if err == nil {
		err = folder.Commit()
	}
	if err == nil {
		folder.Info.Complete, folder.Info.Filling, folder.Info.Kept = plane.release(), "", false
		err = folder.Save()
	}
	if err != nil {
		// Nothing is stopped, because the process ends now, and etcd loses nothing by that. An API server
		// that is not ready cannot be stopped: its start-up hooks treat that as a failure and exit before the
		// folder is given back, which then looks like that of a cluster that was killed. To wait until it is
		// ready takes too long on a busy machine.
		o.Report.Error(err)
		return errors.Join(err, folder.RollBack(), folder.Abandon())
	}

	o.Report.Ready(plane.server(), folder.Path("kubeconfig"), o.Kubernetes)
	early.ResumeGarbageCollection()
	plane.afterReady()
	if err := folder.Sweep(); err != nil {
		klog.ErrorS(err, "The next start removes it")
	}
	err = plane.wait(ctx)
	if noteErr := folder.Stopping(); noteErr != nil {
		klog.ErrorS(noteErr, "The stop is not announced")
	}
	plane.stop()
	if err == nil && errors.Is(context.Cause(ctx), ErrRestart) {
		err = folder.Keep()
	}
	return errors.Join(err, folder.Close(err == nil))
}

// prepare does everything that needs no running part: the port, the keys and
// what the folder remembers.
func (p *plane) prepare(ctx context.Context) error {
	// Relative paths keep the socket of etcd below the length limit of unix
	// sockets, however deep the folder is.
	if err := os.Chdir(p.folder.Dir); err != nil {
		return fmt.Errorf("entering the state folder: %w", err)
	}
	if p.options.Ephemeral && !p.folder.New && !p.folder.Info.Ephemeral {
		return &fault.Error{
			Reason:  fault.KeptState,
			Message: fmt.Sprintf("there is state in %s that was meant to last, and an ephemeral cluster would remove it", p.folder.Dir),
			Hint:    "start it without --ephemeral, remove the state first, or choose another name",
		}
	}
	if err := p.fill(ctx); err != nil {
		return err
	}
	if err := errors.Join(p.emulate(), p.choosePlugins()); err != nil {
		return err
	}
	if err := p.listen(); err != nil {
		return err
	}
	p.folder.Info.Ephemeral = p.options.Ephemeral
	p.folder.Info.Durable, p.folder.Info.History = p.options.Durable, p.options.History
	p.folder.Info.Port = p.port()
	if err := p.folder.Save(); err != nil {
		return err
	}
	// Keys that a complete cluster has lost are not replaced without a word:
	// every kubeconfig and token of it would stop working.
	if p.folder.Info.Complete == "" {
		if err := pki.Create(p.folder.Path("pki"), p.options.Durable); err != nil {
			return err
		}
	}
	var err error
	if p.keys, err = pki.Load(p.folder.Path("pki")); err != nil {
		if p.folder.New {
			return err
		}
		return state.Unusable(p.folder.Dir, err)
	}
	// A large database takes memory from the start, so collecting must not wait.
	if info, err := os.Stat(etcd.Database(p.folder.Path(etcdData))); err == nil && info.Size() > largeDatabase {
		early.ResumeGarbageCollection()
	}
	return p.writeKubeconfig()
}

// listen takes the port before anything else starts: the kernel queues early
// connections, and a port that is taken is noticed at once.
func (p *plane) listen() error {
	port := p.options.Port
	remembered := port == 0 && p.folder.Info.Port != 0
	if remembered {
		port = p.folder.Info.Port
	}
	if port == 0 {
		if p.listener = listenAnywhere(); p.listener != nil {
			return nil
		}
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		hint := "choose another port, or 0 to let the system choose"
		if remembered {
			hint = fmt.Sprintf("this cluster has always used it, and kubeconfigs of it point there; free the port (`lsof -i :%d` shows who has it) or move the cluster with --port", port)
		}
		return &fault.Error{Reason: fault.PortTaken, Message: fmt.Sprintf("port %d on 127.0.0.1 is taken by another process", port), Hint: hint}
	}
	if err != nil {
		return fmt.Errorf("listening on %s: %w", address, err)
	}
	p.listener = listener
	return nil
}

// listenAnywhere chooses the port of a new cluster. It is to be kept, so it comes
// from below the range out of which systems give ports to outgoing connections:
// one of those could hold it when the cluster starts again. It returns nil if a
// few attempts find none that is free; then the system may choose.
func listenAnywhere() net.Listener {
	for range 20 {
		port := 20000 + rand.IntN(10000) //nolint:gosec // not a secret
		if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return listener
		}
	}
	return nil
}

// largeDatabase is about what a thousand pods leave behind.
const largeDatabase = 64 << 20

func (p *plane) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *plane) server() string { return "https://" + p.listener.Addr().String() }

func interrupted(ctx context.Context, doing string) error {
	if ctx.Err() == nil {
		return nil
	}
	klog.InfoS("Interrupted", "while", doing)
	return &fault.Error{
		Reason:  fault.Interrupted,
		Message: "interrupted while " + doing,
		Hint:    "nothing was lost; start it again",
	}
}
