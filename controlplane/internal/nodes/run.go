// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// podWorkers is how many pods are written at the same time. The writes wait for the API server most of
// the time; a few more than it can work on keep it busy, and many more would only take its turns
// from the scheduler and the controllers, which the next pod waits for.
const podWorkers = 16

// nodeWorkers is enough: a node is looked at when it changes, which is every few minutes.
const nodeWorkers = 2

// Options of Run.
type Options struct {
	// Config is how to reach the API server as User. Its limits decide how fast pods start. It must
	// work already: a first request that is refused is repeated about a second later.
	Config *rest.Config
	// Logger receives warnings and errors; the zero value is klog's.
	Logger klog.Logger
}

// Run simulates the kubelets of all nodes until ctx ends.
func Run(ctx context.Context, o Options) error {
	config := rest.CopyConfig(o.Config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building the client of the simulated nodes: %w", err)
	}
	if o.Logger.GetSink() == nil {
		o.Logger = klog.Background()
	}
	return run(klog.NewContext(ctx, o.Logger), client)
}

func run(ctx context.Context, client kubernetes.Interface) error {
	// Cancelled on the way out, so that an error does not leave half of it running.
	ctx, cancel := context.WithCancel(ctx)
	events := newEventWriter(client)
	s := newSimulation(client, events)

	var running sync.WaitGroup
	defer func() {
		cancel()
		s.podQueue.ShutDown()
		s.nodeQueue.ShutDown()
		running.Wait()
		events.close()
	}()

	named := newAddresses(namedNodeNetwork)
	player, err := startNodePlayer(ctx, client, s.leases.GetStore(), s.nodes.GetStore(), named)
	if err != nil {
		return err
	}
	s.player = player
	if err := s.watch(ctx, named); err != nil {
		return err
	}
	for _, i := range []cache.SharedIndexInformer{s.nodes, s.pods, s.leases} {
		running.Go(func() { i.RunWithContext(ctx) })
	}

	// Pods do not wait for leases. Both wait for all pods to be known: which addresses are taken, and
	// which nodes are lost, depends on them.
	if !cache.WaitFor(ctx, "", s.nodes.HasSyncedChecker(), s.pods.HasSyncedChecker()) {
		return nil
	}
	s.occupyAddresses()
	s.work(ctx, &running, podWorkers, s.podQueue, s.kubelet.sync)
	if !cache.WaitFor(ctx, "", s.leases.HasSyncedChecker()) {
		return nil
	}
	s.work(ctx, &running, nodeWorkers, s.nodeQueue, s.syncNode)
	<-ctx.Done()
	return nil
}

// work starts the workers of a queue.
func (s *simulation) work(
	ctx context.Context, running *sync.WaitGroup, workers int,
	queue workqueue.TypedRateLimitingInterface[string], sync func(context.Context, string) (time.Duration, error),
) {
	next := func() bool {
		key, shutdown := queue.Get()
		if shutdown {
			return false
		}
		defer queue.Done(key)
		again, err := sync(ctx, key)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			klog.FromContext(ctx).Error(err, "Simulated kubelet failed and will try again", "object", key)
			queue.AddRateLimited(key)
		default:
			queue.Forget(key)
			if again > 0 {
				queue.AddAfter(key, again)
			}
		}
		return true
	}
	for range workers {
		running.Go(func() {
			for next() {
			}
		})
	}
}
