// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/opdock/opdock/controlplane/internal/usage"
)

// eventWriter writes the events of pods and nodes.
type eventWriter struct {
	client      kubernetes.Interface
	broadcaster record.EventBroadcaster
	warned      sync.Map // names of the warnings about unknown behaviours that are known to exist
}

func newEventWriter(client kubernetes.Interface) *eventWriter {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return &eventWriter{client: client, broadcaster: broadcaster}
}

// close drops what is not written yet.
func (w *eventWriter) close() { w.broadcaster.Shutdown() }

func (w *eventWriter) write(pod *corev1.Pod, events []event) {
	if len(events) == 0 {
		return
	}
	recorder := w.broadcaster.NewRecorder(scheme.Scheme, kubeletOf(pod))
	for _, e := range events {
		recorder.Event(pod, e.kind, e.reason, e.message)
	}
}

// nodeLost emits the event of the node lifecycle controller for a node that does not respond.
func (w *eventWriter) nodeLost(node *corev1.Node) {
	reference := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	recorder := w.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "node-controller"})
	recorder.Eventf(reference, corev1.EventTypeNormal, "NodeNotReady", "Node %s status is now: NodeNotReady", node.Name)
}

func kubeletOf(pod *corev1.Pod) corev1.EventSource {
	return corev1.EventSource{Component: fieldManager, Host: pod.Spec.NodeName}
}

// unknownBehaviour warns about a behaviour that means nothing.
func (w *eventWriter) unknownBehaviour(ctx context.Context, pod *corev1.Pod, reason error) {
	w.badAnnotation(ctx, pod, Annotation, "UnknownBehaviour",
		fmt.Sprintf("%v; the pod runs as if it had none. Valid are: %s", reason, validBehaviours))
}

// unknownUsage warns about a usage that means nothing.
func (w *eventWriter) unknownUsage(ctx context.Context, pod *corev1.Pod, reason error) {
	w.badAnnotation(ctx, pod, usage.Annotation, "UnknownUsage",
		fmt.Sprintf("%v; the pod uses the default amounts. Valid are: %s", reason, usage.Valid))
}

// badAnnotation warns once about a value that means nothing. The event's name follows from the
// pod and the value, so the store itself keeps it from being written twice, after a restart as well.
func (w *eventWriter) badAnnotation(ctx context.Context, pod *corev1.Pod, annotation, reason, explanation string) {
	value := pod.Annotations[annotation]
	name := fmt.Sprintf("%s.%s", pod.Name, digest(string(pod.UID) + value)[:16])
	if _, written := w.warned.Load(name); written {
		return
	}
	now := metav1.NewTime(time.Now())
	warning := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace,
			Name:      name,
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Type:                corev1.EventTypeWarning,
		Reason:              reason,
		Message:             fmt.Sprintf("annotation %s: %q: %s", annotation, value, explanation),
		Source:              kubeletOf(pod),
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
		ReportingController: fieldManager,
		ReportingInstance:   pod.Spec.NodeName,
	}
	_, err := w.client.CoreV1().Events(pod.Namespace).Create(ctx, warning, metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		w.warned.Store(name, true)
	case ctx.Err() == nil:
		klog.FromContext(ctx).Error(err, "Writing event", "pod", klog.KObj(pod), "reason", warning.Reason)
	}
}
