// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers runs the controllers of the upstream
// kube-controller-manager inside this process.
package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	kcmconfig "k8s.io/kubernetes/pkg/controller/apis/config"
)

// shutdownTimeout bounds the wait for controllers that are slow to stop.
const shutdownTimeout = 5 * time.Second

// Options configures the controllers.
type Options struct {
	// Loopback is the API server's privileged client configuration.
	Loopback *rest.Config
	// QPS limits the requests of each controller per second, 0 not at all.
	// kube-controller-manager's default is 20, which protects an API server that
	// many depend on; here it would only make everything wait.
	QPS float32
	// RootCAFile is published to every namespace, so pods can trust the API server.
	RootCAFile string
	// SigningCertFile and SigningKeyFile sign certificate requests. If both are empty, requests are
	// not signed.
	SigningCertFile, SigningKeyFile string
	// ServiceAccountKeyFile signs the tokens of token secrets. It may be empty.
	ServiceAccountKeyFile string
}

// Manager holds the controllers.
type Manager struct {
	context app.ControllerContext
	// first run from the start; late ones are built when the cluster is ready.
	first     []app.Controller
	buildLate func() ([]app.Controller, error)
	ready     chan struct{}
	// stopBuilding stops everything that the controllers started while they were built.
	stopBuilding context.CancelFunc
}

// isLate names the controllers that a first Deployment does not need and that would take CPU
// time from the others.
func isLate(name string) bool {
	switch name {
	// They discover all kinds when they are built, which needs a ready server, and then list all
	// objects.
	case names.GarbageCollectorController, names.NamespaceController, names.ResourceQuotaController:
		return true
	// It builds the schemas of all kinds.
	case names.ValidatingAdmissionPolicyStatusController:
		return true
	}
	return false
}

// New builds the controllers. They do nothing before Run.
func New(ctx context.Context, o Options) (*Manager, error) {
	config, err := componentConfig(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.QPS > 0 {
		o.Loopback = rest.CopyConfig(o.Loopback)
		o.Loopback.QPS, o.Loopback.Burst = o.QPS, int(o.QPS*3/2) // the ratio of upstream's defaults
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &Manager{ready: make(chan struct{}), stopBuilding: cancel}
	if m.context, err = newContext(ctx, o.Loopback, config); err != nil {
		cancel()
		return nil, err
	}

	first, late := app.NewControllerDescriptors(), app.NewControllerDescriptors()
	for name := range first {
		if isLate(name) {
			delete(first, name)
		} else {
			delete(late, name)
		}
	}
	// Two are built by hand: upstream's descriptor of the first is only complete
	// inside kube-controller-manager, and the second would touch the disk.
	delete(first, names.ServiceAccountTokenController)
	delete(first, names.PersistentVolumeBinderController)
	volumes, err := newVolumeController(ctx, m.context)
	if err != nil {
		cancel()
		return nil, err
	}
	m.first = append(m.first, volumes)
	tokens, err := newTokenController(ctx, m.context, o)
	if err != nil {
		cancel()
		return nil, err
	}
	if tokens != nil {
		m.first = append(m.first, tokens)
	}
	built, err := app.BuildControllers(ctx, m.context, first, nil, noHealthChecks{})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("building controllers: %w", err)
	}
	m.first = append(m.first, built...)
	m.buildLate = func() ([]app.Controller, error) {
		return app.BuildControllers(ctx, m.context, late, nil, noHealthChecks{})
	}
	return m, nil
}

// Run runs the controllers until ctx ends and returns when they have stopped.
// It closes started when they begin to work.
func (m *Manager) Run(ctx context.Context, started chan<- struct{}) error {
	defer m.stopBuilding()
	m.startInformers(ctx)
	defer m.context.InformerFactory.Shutdown()
	// Controllers look ten times a second whether their informers have synced.
	// Started after that, they find it so at once.
	if !m.waitSynced(ctx) {
		return nil
	}
	// A cluster without the late ones is none, so the others end with them.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := make(chan error, 1)
	go func() {
		err := m.runLate(ctx)
		if err != nil {
			cancel()
		}
		late <- err
	}()
	close(started)
	app.RunControllers(ctx, m.context, m.first, 0, shutdownTimeout)
	return <-late
}

func (m *Manager) runLate(ctx context.Context) error {
	select {
	case <-m.ready:
	case <-ctx.Done():
		return nil
	}
	built, err := m.buildLate()
	if err != nil {
		return fmt.Errorf("building the late controllers: %w", err)
	}
	// They brought informers of their own into the shared factories.
	m.startInformers(ctx)
	close(m.context.InformersStarted)
	app.RunControllers(ctx, m.context, built, 0, shutdownTimeout)
	return nil
}

func (m *Manager) waitSynced(ctx context.Context) bool {
	// With a channel that is closed already, the factory answers without waiting.
	now := make(chan struct{})
	close(now)
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		synced := true
		for _, ok := range m.context.InformerFactory.WaitForCacheSync(now) {
			synced = synced && ok
		}
		if synced {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

// Ready lets the late controllers start.
func (m *Manager) Ready() { close(m.ready) }

func (m *Manager) startInformers(ctx context.Context) {
	m.context.InformerFactory.Start(ctx.Done())
	m.context.ObjectOrMetadataInformerFactory.Start(ctx.Done())
}

func componentConfig(ctx context.Context, o Options) (*kcmconfig.KubeControllerManagerConfiguration, error) {
	opts, err := kcmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("options of the controllers: %w", err)
	}
	// Some defaults are only set by adding the flags, even if they are not parsed.
	_ = opts.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	// The holder of the lock on the state folder is the leader. There is no separate port to
	// secure: the metrics are on the API server's.
	opts.Generic.LeaderElection.LeaderElect = false
	opts.SecureServing.BindPort = 0
	opts.Master = o.Loopback.Host
	opts.SAController.ServiceAccountKeyFile = o.ServiceAccountKeyFile
	opts.SAController.RootCAFile = o.RootCAFile
	opts.CSRSigningController.ClusterSigningCertFile = o.SigningCertFile
	opts.CSRSigningController.ClusterSigningKeyFile = o.SigningKeyFile

	config, err := opts.Config(ctx, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err != nil {
		return nil, fmt.Errorf("configuring the controllers: %w", err)
	}
	config.EventBroadcaster.Shutdown() // for leader election only
	klog.V(2).InfoS("Configured controllers", "enabled", config.ComponentConfig.Generic.Controllers)
	return &config.ComponentConfig, nil
}

// noHealthChecks drops the health checks of controllers, which are not served.
type noHealthChecks struct{}

func (noHealthChecks) AddHealthChecker(...healthz.HealthChecker) {}
