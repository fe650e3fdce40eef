// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/opdock/opdock/controlplane/internal/usage"
)

// fieldManager is under which name the status of a pod is written, as in a real cluster.
const fieldManager = "kubelet"

// podKubelet does for all pods what their kubelets would.
type podKubelet struct {
	client    kubernetes.Interface
	pods      cache.Indexer
	nodes     cache.Store
	addresses *addresses // of pods, owned by their UIDs
	events    *eventWriter
	now       func() time.Time
}

// sync brings one pod up to date and returns how long to wait before the next look, zero if only a
// change can matter. A write that loses against another one is not repeated: the pod's newer version
// is on its way through the watch and is looked at then.
func (k *podKubelet) sync(ctx context.Context, key string) (time.Duration, error) {
	pod, exists := fromStore[*corev1.Pod](k.pods, key)
	if !exists {
		return 0, nil
	}
	node, exists := fromStore[*corev1.Node](k.nodes, pod.Spec.NodeName)
	if !exists || hostIP(node) == "" {
		return 0, nil // no node, no kubelet; or one that has not reported yet
	}
	switch {
	case isLost(node):
		return 0, k.lose(ctx, pod)
	case pod.DeletionTimestamp != nil:
		return 0, k.remove(ctx, pod)
	case podutil.IsPodTerminal(pod):
		return 0, nil
	}

	behaviour, err := behaviourOf(pod)
	if err != nil {
		k.events.unknownBehaviour(ctx, pod, err)
	}
	if _, err := usage.Parse(pod.Annotations[usage.Annotation]); err != nil {
		k.events.unknownUsage(ctx, pod, err)
	}
	at, err := k.place(pod, node)
	if err != nil {
		return 0, fmt.Errorf("placing pod %s: %w", key, err)
	}
	now := k.now()
	result := observe(pod, behaviour, at, now)
	if err := k.write(ctx, pod, result.status, result.events...); err != nil {
		return 0, err
	}
	if result.wake.IsZero() {
		return 0, nil
	}
	return max(result.wake.Sub(now), time.Millisecond), nil
}

// place says where the pod runs. An address once reported stays, whatever this process remembers.
func (k *podKubelet) place(pod *corev1.Pod, node *corev1.Node) (place, error) {
	at := place{hostIP: hostIP(node), podIP: pod.Status.PodIP}
	if at.podIP != "" {
		return at, nil
	}
	if pod.Spec.HostNetwork {
		at.podIP = at.hostIP
		return at, nil
	}
	ip, err := k.addresses.of(string(pod.UID))
	at.podIP = ip
	return at, err
}

// lose reports what a lost node means for a pod. Its deletion has to wait until the node is back.
func (k *podKubelet) lose(ctx context.Context, pod *corev1.Pod) error {
	return k.write(ctx, pod, unreachable(pod, k.now()),
		event{kind: corev1.EventTypeWarning, reason: "NodeNotReady", message: "Node is not ready"})
}

// remove finishes the deletion of a pod. The final status of a pod without finalizers would be gone in the
// same moment, so only the others get one. That halves the writes of deleting a thousand pods.
func (k *podKubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	ran := len(pod.Status.ContainerStatuses) > 0 && !podutil.IsPodTerminal(pod)
	if len(pod.Finalizers) > 0 && ran {
		if final := stopped(pod, k.now()); podutil.IsPodPhaseTerminal(final.Phase) {
			return k.write(ctx, pod, final) // whose echo leads back here
		}
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 {
		return nil // all that is left to do is up to the owners of its finalizers
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// write stores a pod's status if it differs, and then emits the events for it.
func (k *podKubelet) write(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus, events ...event) error {
	if apiequality.Semantic.DeepEqual(pod.Status, status) {
		return nil
	}
	updated := *pod
	updated.Status = status
	_, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, &updated, metav1.UpdateOptions{FieldManager: fieldManager})
	switch {
	case err == nil:
		k.events.write(pod, events)
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	default:
		return fmt.Errorf("writing status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
}
