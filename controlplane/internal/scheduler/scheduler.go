// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduler runs the upstream kube-scheduler inside this process.
package scheduler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/opdock/opdock/controlplane/internal/identity"
)

// Scheduler places pods on nodes.
type Scheduler struct {
	scheduler        *scheduler.Scheduler
	informers        informers.SharedInformerFactory
	dynamicInformers dynamicinformer.DynamicSharedInformerFactory
	broadcaster      events.EventBroadcaster
}

// New builds a scheduler with upstream's default configuration.
func New(ctx context.Context, loopback *rest.Config) (*Scheduler, error) {
	fail := func(err error) (*Scheduler, error) { return nil, fmt.Errorf("building the scheduler: %w", err) }
	config, err := latest.Default()
	if err != nil {
		return fail(err)
	}
	clientConfig := identity.As(loopback, identity.Scheduler, "kube-scheduler")
	client, err := kubernetes.NewForConfig(clientConfig)
	if err != nil {
		return fail(err)
	}
	// Custom resources have no protobuf form.
	dynamicConfig := rest.CopyConfig(clientConfig)
	dynamicConfig.ContentType = "application/json"
	dynamicClient, err := dynamic.NewForConfig(dynamicConfig)
	if err != nil {
		return fail(err)
	}

	s := &Scheduler{
		informers:        scheduler.NewInformerFactory(client, 0),
		dynamicInformers: dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, corev1.NamespaceAll, nil),
		broadcaster:      events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}),
	}
	var recorders profile.RecorderFactory = func(name string) events.EventRecorderLogger {
		return s.broadcaster.NewRecorder(scheme.Scheme, name)
	}
	s.scheduler, err = scheduler.New(ctx, client, s.informers, s.dynamicInformers, recorders,
		scheduler.WithComponentConfigVersion(config.APIVersion),
		scheduler.WithKubeConfig(clientConfig),
		scheduler.WithProfiles(config.Profiles...),
		scheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(config.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(config.PodInitialBackoffSeconds),
		scheduler.WithExtenders(config.Extenders...),
		scheduler.WithParallelism(config.Parallelism),
	)
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// Run schedules pods until ctx ends. It closes started when it has seen the
// cluster as it is and begins to work.
func (s *Scheduler) Run(ctx context.Context, started chan<- struct{}) {
	defer s.broadcaster.Shutdown()
	if err := s.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		klog.ErrorS(err, "The scheduler records no events")
	}

	s.informers.Start(ctx.Done())
	s.dynamicInformers.Start(ctx.Done())
	if !s.waitSynced(ctx) {
		return
	}
	close(started)
	s.scheduler.Run(ctx)
}

// waitSynced looks more often than upstream's waits do, which is ten times a
// second: that is a fifth of the whole start-up.
func (s *Scheduler) waitSynced(ctx context.Context) bool {
	const interval = 2 * time.Millisecond
	for {
		look, cancel := context.WithTimeout(ctx, interval)
		synced := allTrue(s.informers.WaitForCacheSync(look.Done())) &&
			allTrue(s.dynamicInformers.WaitForCacheSync(look.Done())) &&
			s.scheduler.WaitForHandlersSync(look) == nil
		cancel()
		if synced {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

func allTrue[K comparable](synced map[K]bool) bool {
	for _, ok := range synced {
		if !ok {
			return false
		}
	}
	return true
}
