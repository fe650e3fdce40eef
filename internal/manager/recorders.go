// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
)

// newEventSink returns what sends events to the API server of a manager.
func newEventSink(mgr ctrl.Manager) (events.EventSink, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.ContentType = runtime.ContentTypeProtobuf // costs less than JSON on both sides
	client, err := eventsv1client.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating a client for events: %w", err)
	}
	return &events.EventSinkImpl{Interface: client}, nil
}

// recorders creates event recorders. controller-runtime has some, too, but their sink cannot be chosen.
type recorders struct {
	sink   events.EventSink
	scheme *runtime.Scheme
	log    logr.Logger

	mutex       sync.RWMutex
	broadcaster events.EventBroadcaster // set with the first event
	stop        func()                  // set with broadcaster
	stopped     bool
}

// named returns the recorder of a controller.
func (r *recorders) named(controller string) events.EventRecorder {
	return &recorder{recorders: r, controller: controller}
}

// start returns the broadcaster; nil if the manager has stopped.
func (r *recorders) start() (events.EventBroadcaster, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.broadcaster != nil || r.stopped {
		return r.broadcaster, nil
	}
	broadcaster := events.NewBroadcaster(r.sink)
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), r.log))
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("recording events: %w", err)
	}
	stopLogging, err := broadcaster.StartLogging(r.log.V(1))
	if err != nil {
		stopLogging = func() {}
		r.log.Error(err, "Events are not logged")
	}
	r.broadcaster = broadcaster
	r.stop = func() {
		broadcaster.Shutdown()
		cancel()
		stopLogging()
	}
	return broadcaster, nil
}

// close ends recording. What is recorded after that is dropped.
func (r *recorders) close() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.stopped = true
	if r.broadcaster != nil {
		r.stop()
		r.broadcaster = nil
	}
}

// recorder starts recording with the first event, because a manager may never be started.
type recorder struct {
	recorders  *recorders
	controller string

	once sync.Once
	next events.EventRecorder
}

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.once.Do(func() {
		broadcaster, err := r.recorders.start()
		if err != nil {
			r.recorders.log.Error(err, "Events are lost")
		}
		if broadcaster != nil {
			r.next = broadcaster.NewRecorder(r.recorders.scheme, r.controller)
		}
	})
	r.recorders.mutex.RLock()
	defer r.recorders.mutex.RUnlock()
	if r.next != nil && !r.recorders.stopped { // a broadcaster that was shut down would panic
		r.next.Eventf(regarding, related, eventtype, reason, action, note, args...)
	}
}

// recordingManager is a manager that stops recording when everything else has stopped.
type recordingManager struct {
	ctrl.Manager
	recorders *recorders
}

// Start implements manager.Manager.
func (m *recordingManager) Start(ctx context.Context) error {
	defer m.recorders.close()
	return m.Manager.Start(ctx)
}
