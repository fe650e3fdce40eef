// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/opdock/opdock/controlplane/internal/apiserver"
	"github.com/opdock/opdock/controlplane/internal/controllers"
	"github.com/opdock/opdock/controlplane/internal/crddeletion"
	"github.com/opdock/opdock/controlplane/internal/identity"
	"github.com/opdock/opdock/controlplane/internal/nodes"
	"github.com/opdock/opdock/controlplane/internal/scheduler"
	"github.com/opdock/opdock/controlplane/internal/standin"
)

// ClientOptions configures the clients of the API server.
type ClientOptions struct {
	// Nodes is how many nodes must exist; 0 leaves them as they are.
	Nodes       int
	Controllers controllers.Options
}

// Clients are the parts that are clients of the API server: the controllers,
// the scheduler and the simulated nodes. They are what an API server alone, as
// in envtest, lacks to be a cluster.
type Clients struct {
	api     *apiserver.Server
	options ClientOptions
	admin   kubernetes.Interface

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	failed  chan error

	controllers *controllers.Manager
	started     []<-chan struct{}
}

// StartClients builds the clients while the API server is still starting, and
// lets them go as soon as it can tell what they may do.
func StartClients(ctx context.Context, api *apiserver.Server, o ClientOptions) (*Clients, error) {
	o.Controllers.Loopback = api.Loopback
	admin, err := kubernetes.NewForConfig(api.Loopback)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	c := &Clients{api: api, options: o, admin: admin, failed: make(chan error, 4)}
	c.ctx, c.cancel = context.WithCancel(ctx)

	c.controllers, err = controllers.New(c.ctx, o.Controllers)
	if err != nil {
		c.Stop()
		return nil, err
	}
	placement, err := scheduler.New(c.ctx, api.Loopback)
	if err != nil {
		c.Stop()
		return nil, err
	}

	scheduling, controlling := make(chan struct{}), make(chan struct{})
	c.started = []<-chan struct{}{scheduling, controlling}
	c.run(func() error { return c.controllers.Run(c.ctx, controlling) })
	c.run(func() error { placement.Run(c.ctx, scheduling); return nil })
	c.run(func() error {
		// Existing nodes are not written again: an admission webhook for nodes may wait for an operator
		// that is not running yet.
		if api.HasNodes() {
			return nil
		}
		if err := nodes.Ensure(c.ctx, admin, o.Nodes); err != nil {
			return fmt.Errorf("creating nodes: %w", err)
		}
		return nil
	})
	c.run(func() error {
		return nodes.Run(c.ctx, nodes.Options{Config: identity.As(api.Loopback, nodes.User, "kubelet")})
	})
	return c, nil
}

// run starts a part once the API server can authorize it, and watches it.
func (c *Clients) run(part func() error) {
	c.running.Go(func() {
		if c.api.WaitAuthorized(c.ctx) != nil {
			return
		}
		if err := part(); err != nil && c.ctx.Err() == nil {
			c.failed <- err
		}
	})
}

// WaitStarted returns when controllers and scheduler are at work.
func (c *Clients) WaitStarted(ctx context.Context) error {
	for _, started := range c.started {
		select {
		case <-started:
		case err := <-c.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// WaitUsable returns when a pod could be created and run.
func (c *Clients) WaitUsable(ctx context.Context) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !usable(ctx, c.admin, c.options.Nodes > 0) {
		select {
		case err := <-c.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
}

// AfterReady starts what was put off to be ready sooner.
func (c *Clients) AfterReady() {
	c.controllers.Ready()
	c.run(func() error {
		return standin.Run(c.ctx, identity.As(c.api.Loopback, standin.User, "opdock-stand-in", "system:masters"))
	})
	c.run(func() error { return crddeletion.Run(c.ctx, c.api.Loopback) })
}

// Err delivers the failure of a part.
func (c *Clients) Err() <-chan error { return c.failed }

// Stop ends the clients and returns when they are gone.
func (c *Clients) Stop() {
	c.cancel()
	c.running.Wait()
}
