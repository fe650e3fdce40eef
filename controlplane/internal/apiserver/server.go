// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver runs the upstream kube-apiserver inside this process and
// makes it start several times faster than the stand-alone program.
//
// The server that results is the upstream one: same flags, same admission, same
// authorization, same API. What differs is the order in which things happen
// while it starts, and each difference is explained where it is made:
//
//   - the loopback certificate is ECDSA (config.go);
//   - bootstrap objects are written into etcd before the server starts, and the
//     upstream reconcilers for them run after it is ready (bootstrap.go);
//   - certificates are read once (certificates.go);
//   - OpenAPI documents are built when they are first asked for, or shortly
//     after the server is ready (openapi.go).
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"

	"github.com/opdock/opdock/controlplane/internal/kubelet"
	"github.com/opdock/opdock/controlplane/internal/metrics"
	"github.com/opdock/opdock/controlplane/internal/objects"
)

const (
	// watchGrace is how long open watches hold up the end. Upstream waits a
	// minute for them, which a load balancer needs and a laptop does not.
	watchGrace = time.Second
	// stopTimeout bounds the wait for requests that do not end.
	stopTimeout = 10 * time.Second
)

// Options describe an API server.
type Options struct {
	// Run are the flags of kube-apiserver. They need not be completed.
	Run *options.ServerRunOptions
	// Cluster means that controllers, scheduler and nodes run beside the server. Otherwise it has
	// only what an upstream server has.
	Cluster bool
	// New means that the cluster has never been ready before.
	New bool
	// Nodes is how many simulated nodes exist from the beginning.
	Nodes int
	// Bootstrapped means that this version has already written the bootstrap objects, so they need
	// not be written again.
	Bootstrapped bool
	// Objects are written into etcd before anything else; nil if there are none.
	Objects *objects.File
	// Imported receives the result of importing Objects.
	Imported func(objects.Result)
	// Logs is a folder with log files of pods, by namespace and name; it need not exist.
	Logs string
	// LoopbackOnly keeps the server from dialing anything that is not on this
	// machine on behalf of its users: kubelets, pods and services are simulated,
	// and their addresses may be real ones elsewhere.
	LoopbackOnly bool
}

// Server is a kube-apiserver. It is created in three steps, so components that need only its
// client configuration can start meanwhile.
type Server struct {
	// Loopback is a client configuration with all rights, without rate limits,
	// that only this process can use.
	Loopback *rest.Config

	options     Options
	config      *app.Config
	enablesRBAC bool
	kubelets    *kubelet.Server // of simulated nodes; nil if there are none

	// The rest is set by Assemble.
	aggregator *aggregatorapiserver.APIAggregator
	// bootstraps is true if this server writes the bootstrap objects to etcd before it starts.
	bootstraps bool
	// hooksDeferred is true if the bootstrap objects have this version, so the upstream hooks for
	// them can run later. Objects of another version lack rights that controllers and scheduler need to start.
	hooksDeferred bool

	// The rest is set by Start.
	stop context.CancelFunc
	done chan struct{}
	err  error // with which it ended; to be read after done
}

// New configures the server.
func New(ctx context.Context, o Options) (*Server, error) {
	completed, err := o.Run.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("completing the API server's options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("the API server's options: %w", utilerrors.NewAggregate(errs))
	}
	config, err := newConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("configuring the API server: %w", err)
	}
	if o.LoopbackOnly {
		dialOnlyLoopback(config.KubeAPIs)
	}
	var kubelets *kubelet.Server
	if o.Cluster {
		if err := stopWatchingCertificates(config); err != nil {
			return nil, err
		}
		core := config.KubeAPIs.ControlPlane.VersionedInformers.Core().V1()
		if kubelets, err = kubelet.New(core.Pods().Lister(), core.Nodes().Lister(), o.Logs); err != nil {
			return nil, err
		}
		dialSimulated(config.KubeAPIs, kubelets)
	}
	loopback := rest.CopyConfig(config.KubeAPIs.ControlPlane.Generic.LoopbackClientConfig)
	loopback.QPS, loopback.Burst = -1, 0
	return &Server{
		Loopback: loopback, options: o, config: config, kubelets: kubelets,
		enablesRBAC: !config.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks.Has(rbacrest.PostStartHookName),
	}, nil
}

// Assemble writes the bootstrap objects to etcd and assembles the server.
func (s *Server) Assemble(ctx context.Context) error {
	generic := s.config.KubeAPIs.ControlPlane.Generic
	written := make(chan error, 1)
	s.bootstraps = canBootstrap(s.config.Options)
	if s.hooksDeferred = s.bootstraps && (s.options.New || s.options.Bootstrapped); s.hooksDeferred {
		for name := range deferredHooks() {
			generic.DisabledPostStartHooks.Insert(name)
		}
	}
	if s.options.Objects != nil && !s.bootstraps {
		return errors.New("objects cannot be imported into an etcd that encrypts them")
	}
	if s.bootstraps && (!s.options.Bootstrapped || s.options.Nodes > 0) {
		go func() { written <- bootstrap(ctx, s.config, s.options) }()
	} else {
		close(written)
	}
	// Only the kube-apiserver proper defers its documents: the extensions server
	// keeps its own (small) one because it adds every CRD to it.
	generic.SkipOpenAPIInstallation = true
	completed, err := s.config.Complete()
	if err != nil {
		return fmt.Errorf("completing the API server's configuration: %w", err)
	}
	s.aggregator, err = app.CreateServerChain(completed)
	if err != nil {
		return fmt.Errorf("assembling the API server: %w", err)
	}
	s.aggregator.GenericAPIServer.ShutdownTimeout = watchGrace

	kube, ok := s.aggregator.GenericAPIServer.NextDelegate().(*genericapiserver.GenericAPIServer)
	if !ok {
		return errors.New("assembling the API server: the aggregator does not delegate to the kube-apiserver")
	}
	if s.options.Cluster {
		core := s.config.KubeAPIs.ControlPlane.VersionedInformers.Core().V1()
		if err := metrics.Install(kube, core.Pods().Lister(), core.Nodes().Lister()); err != nil {
			return err
		}
	}
	installLazyOpenAPI(kube, generic)
	return <-written
}

// HasNodes reports whether the nodes of Options exist from the beginning. If not, they have to
// be created through the API.
func (s *Server) HasNodes() bool { return s.bootstraps }

// Start serves until Stop.
func (s *Server) Start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.done = stop, make(chan struct{})
	go func() {
		defer close(s.done)
		s.err = s.run(ctx)
	}()
}

// Done is closed when the server has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is why the server has ended by itself. It may be asked after Done.
func (s *Server) Err() error {
	if s.err == nil {
		return errors.New("the API server ended by itself")
	}
	return fmt.Errorf("the API server ended: %w", s.err)
}

// Stop ends the server and returns when open requests are done with. Started or
// not, it releases what Assemble took.
func (s *Server) Stop() error {
	if s.kubelets != nil {
		s.kubelets.Close() // do not wait for clients that follow a log
	}
	if s.done == nil {
		if s.aggregator != nil {
			s.aggregator.GenericAPIServer.Destroy()
		}
		return nil
	}
	s.stop()
	select {
	case <-s.done:
		return s.err
	case <-time.After(stopTimeout):
		return fmt.Errorf("requests were still open after %s", stopTimeout)
	}
}

func (s *Server) run(ctx context.Context) error {
	prepared, err := s.aggregator.PrepareRun()
	if err != nil {
		return fmt.Errorf("preparing the API server: %w", err)
	}
	if err := prepared.Run(ctx); err != nil {
		return fmt.Errorf("running the API server: %w", err)
	}
	return nil
}

// WaitAuthorized returns when the server can authorize requests. From then on clients other
// than Loopback are served instead of refused.
func (s *Server) WaitAuthorized(ctx context.Context) error {
	if !s.enablesRBAC {
		return s.WaitReady(ctx)
	}
	rbac := s.config.KubeAPIs.ControlPlane.VersionedInformers.Rbac().V1()
	return poll(ctx, func() bool {
		for _, synced := range []cache.InformerSynced{
			rbac.ClusterRoles().Informer().HasSynced,
			rbac.ClusterRoleBindings().Informer().HasSynced,
			rbac.Roles().Informer().HasSynced,
			rbac.RoleBindings().Informer().HasSynced,
		} {
			if !synced() {
				return false
			}
		}
		return true
	})
}

// WaitReady returns when the server calls itself ready.
func (s *Server) WaitReady(ctx context.Context) error {
	handler := s.aggregator.GenericAPIServer.UnprotectedHandler()
	return poll(ctx, func() bool {
		// The request is in memory: no connection, no handshake, no authentication.
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil)
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		return response.Code == http.StatusOK
	})
}

// AfterReady starts the work that was deferred to be ready sooner. It returns at once; the work
// ends with ctx.
func (s *Server) AfterReady(ctx context.Context) {
	if s.hooksDeferred {
		go s.runDeferredHooks(ctx)
	}
	if s.options.Cluster {
		go func() {
			if err := metrics.Register(ctx, s.Loopback); ctx.Err() == nil {
				logIfFailed("Registering the API of metrics", err)
			}
		}()
	}
}

// poll polls at short intervals. The condition has no notification, and a start-up of half a
// second cannot afford longer ones.
func poll(ctx context.Context, done func() bool) error {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
}

func logIfFailed(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		klog.ErrorS(err, what)
	}
}
