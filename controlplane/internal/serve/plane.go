// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/opdock/opdock/controlplane/internal/apiserver"
	"github.com/opdock/opdock/controlplane/internal/controllers"
	"github.com/opdock/opdock/controlplane/internal/etcd"
	"github.com/opdock/opdock/controlplane/internal/nodes"
	"github.com/opdock/opdock/controlplane/internal/objects"
	"github.com/opdock/opdock/controlplane/internal/pki"
	"github.com/opdock/opdock/controlplane/internal/state"
)

// plane is one control plane and what it is made of.
type plane struct {
	options Options
	folder  *state.Folder
	report  *Reporter

	listener net.Listener  // set by prepare
	keys     *pki.Set      // set by prepare
	origin   *origin       // set by prepare if the data came from elsewhere
	imported *objects.File // set by prepare if objects are to be imported

	etcd    *etcd.Server      // set by start
	api     *apiserver.Server // set by start
	clients *Clients          // set by start
}

// start returns when a Deployment could become Available.
func (p *plane) start(ctx context.Context) error {
	if err := p.startEtcd(ctx); err != nil {
		return err
	}
	opts, err := p.apiOptions()
	if err != nil {
		return err
	}
	// What this starts must not end before the clients of the API server do.
	p.api, err = apiserver.New(context.WithoutCancel(ctx), apiserver.Options{
		Run:          opts,
		Cluster:      true,
		New:          p.bootstrappedBy() == "",
		Nodes:        p.wantedNodes(),
		Bootstrapped: p.bootstrappedBy() == p.release(),
		Objects:      p.imported,
		Imported:     func(result objects.Result) { p.report.Progress("import", imported(result)) },
		Logs:         p.folder.Path("logs"),
		LoopbackOnly: true,
	})
	if err != nil {
		return err
	}
	// The clients are built while the API server is put together: each keeps one
	// core busy for a while.
	built := make(chan error, 1)
	go func() {
		var err error
		p.clients, err = p.startClients()
		built <- err
	}()
	if err := p.api.Assemble(ctx); err != nil {
		// The API server is gone; the requests of clients that are being built must fail before they
		// can be stopped.
		_ = p.listener.Close()
		return errors.Join(cmp.Or(interrupted(ctx, "assembling the API server"), err), <-built)
	}
	p.api.Start()
	if err := <-built; err != nil {
		return err
	}
	return p.waitUsable(ctx)
}

func (p *plane) startEtcd(ctx context.Context) error {
	var err error
	p.etcd, err = etcd.Start(ctx, etcd.Options{
		Dir: etcdData, Socket: etcdSocket, Durable: p.options.Durable,
		Existing: p.folder.Info.Complete != "" && p.origin == nil,
	})
	switch {
	case err == nil:
		p.report.Progress("etcd", "etcd is up")
		return nil
	case ctx.Err() != nil:
		return interrupted(ctx, "starting etcd")
	case p.folder.New || p.origin != nil:
		return err
	default:
		return state.Unusable(p.folder.Dir, err)
	}
}

func (p *plane) startClients() (*Clients, error) {
	return StartClients(context.Background(), p.api, ClientOptions{
		Nodes: p.wantedNodes(),
		Controllers: controllers.Options{
			QPS:                   p.options.ControllerQPS,
			RootCAFile:            p.folder.Path("pki", "ca.crt"),
			SigningCertFile:       p.folder.Path("pki", "ca.crt"),
			SigningKeyFile:        p.folder.Path("pki", "ca.key"),
			ServiceAccountKeyFile: p.keys.ServiceAccountKeyFile,
		},
	})
}

// waitUsable returns when everything runs.
func (p *plane) waitUsable(ctx context.Context) error {
	if err := p.untilFailure(ctx, p.api.WaitReady); err != nil {
		return err
	}
	p.report.Progress("apiserver", "API server is ready")
	if err := interrupted(ctx, "waiting for the controllers"); err != nil {
		return err
	}
	if err := p.untilFailure(ctx, p.clients.WaitStarted); err != nil {
		return err
	}
	p.report.Progress("controllers", "controllers and scheduler are running")
	if err := p.untilFailure(ctx, p.clients.WaitUsable); err != nil {
		return err
	}
	p.report.Progress("nodes", "nodes are ready")
	return interrupted(ctx, "waiting for the nodes")
}

// untilFailure waits for a condition while watching for an interrupt, and for the death of the API
// server.
func (p *plane) untilFailure(ctx context.Context, condition func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- condition(ctx) }()
	select {
	case err := <-done:
		return cmp.Or(interrupted(ctx, "starting"), err)
	case <-p.api.Done():
		return p.api.Err()
	case err := <-p.etcd.Err():
		return fmt.Errorf("etcd ended: %w", err)
	}
}

// wantedNodes is how many nodes must exist: 0 leaves them as they are. A cluster
// that was killed before it was ready for the first time is still a new one.
func (p *plane) wantedNodes() int {
	if p.imported != nil && p.imported.Header.Nodes > 0 {
		return p.options.Nodes
	}
	if p.options.Nodes == 0 && p.bootstrappedBy() == "" {
		return 1
	}
	return p.options.Nodes
}

func (p *plane) afterReady() {
	p.clients.AfterReady()
	p.api.AfterReady(p.clients.ctx)
	if p.origin != nil {
		go renewTokens(p.clients.ctx, p.clients.admin)
	}
}

// roomInterval is the interval at which the free disk space is checked. etcd panics if it
// cannot write, so the cluster stops cleanly before that.
const roomInterval = 5 * time.Second

// wait returns nil when ctx ends, and an error when a part dies before that.
func (p *plane) wait(ctx context.Context) error {
	ticker := time.NewTicker(roomInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.api.Done():
			return p.api.Err()
		case err := <-p.etcd.Err():
			return fmt.Errorf("etcd ended: %w", err)
		case err := <-p.clients.Err():
			return err
		case <-ticker.C:
			if err := state.CheckRoom(p.folder.Dir, state.RoomToStop); err != nil {
				return err
			}
		}
	}
}

// stop ends the parts in the order of who needs whom.
func (p *plane) stop() {
	p.clients.Stop()
	if err := p.api.Stop(); err != nil {
		klog.ErrorS(err, "Stopping the API server")
	}
	p.etcd.Stop()
	_ = p.listener.Close()
	if p.imported != nil {
		p.imported.Close()
	}
}

// usable reports whether a pod could be created and run right now.
func usable(ctx context.Context, client kubernetes.Interface, wantNode bool) bool {
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return false
	}
	if !wantNode {
		return true
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	return err == nil && nodes.AnyReady(list.Items)
}
