// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/kwok/pkg/utils/informer"
)

// simulation is all nodes and pods.
type simulation struct {
	client kubernetes.Interface
	pods   cache.SharedIndexInformer
	nodes  cache.SharedIndexInformer
	leases cache.SharedIndexInformer

	podQueue, nodeQueue workqueue.TypedRateLimitingInterface[string]

	kubelet *podKubelet
	player  *nodePlayer
}

// byNode is the index of pods by the node they are bound to.
const byNode = "node"

func nodeOf(pod any) ([]string, error) { return []string{pod.(*corev1.Pod).Spec.NodeName}, nil }

func newSimulation(client kubernetes.Interface, events *eventWriter) *simulation {
	core := client.CoreV1()
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	s := &simulation{
		client: client,
		nodes:  newInformer(&corev1.Node{}, fields.Everything(), nil, core.Nodes().List, core.Nodes().Watch),
		leases: newInformer(&coordinationv1.Lease{}, fields.Everything(), nil, leases.List, leases.Watch),
		pods: newInformer(&corev1.Pod{}, fields.OneTermNotEqualSelector("spec.nodeName", ""), cache.Indexers{byNode: nodeOf},
			core.Pods(metav1.NamespaceAll).List, core.Pods(metav1.NamespaceAll).Watch),
		podQueue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		nodeQueue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	s.kubelet = &podKubelet{
		client: client, pods: s.pods.GetIndexer(), nodes: s.nodes.GetStore(),
		addresses: newAddresses(podNetwork), events: events, now: time.Now,
	}
	return s
}

// newInformer watches all objects of a kind that the selector picks.
func newInformer[L runtime.Object](
	kind runtime.Object, selector fields.Selector, indexers cache.Indexers,
	list func(context.Context, metav1.ListOptions) (L, error),
	watching func(context.Context, metav1.ListOptions) (watch.Interface, error),
) cache.SharedIndexInformer {
	source := listThenWatch{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector.String()
			return list(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector.String()
			return watching(ctx, options)
		},
	}}
	i := cache.NewSharedIndexInformer(source, kind, 0, indexers)
	// Managed fields are half of a pod and are not read here.
	_ = i.SetTransform(func(object any) (any, error) {
		if accessor, ok := object.(metav1.Object); ok {
			accessor.SetManagedFields(nil)
		}
		return object, nil
	})
	return i
}

// listThenWatch lists from the API server's cache and then watches. Streaming the list through the
// watch, as clients do by default, first waits up to 100 ms until the server is sure that its cache is current.
type listThenWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is how the reflector asks.
func (listThenWatch) IsWatchListSemanticsUnSupported() bool { return true }

// watch connects the informers with the queues and with kwok.
func (s *simulation) watch(ctx context.Context, named *addresses) error {
	_, podErr := s.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { s.podChanged(nil, pod.(*corev1.Pod)) },
		UpdateFunc: func(old, pod any) { s.podChanged(old.(*corev1.Pod), pod.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if pod, ok := deleted[*corev1.Pod](object); ok {
				s.podChanged(pod, nil)
			}
		},
	})
	_, nodeErr := s.nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			node := object.(*corev1.Node)
			named.occupy(node.Name, hostIP(node))
			s.nodeChanged(ctx, informer.Added, nil, node)
		},
		UpdateFunc: func(old, node any) {
			s.nodeChanged(ctx, informer.Modified, old.(*corev1.Node), node.(*corev1.Node))
		},
		DeleteFunc: func(object any) {
			if node, ok := deleted[*corev1.Node](object); ok {
				named.release(node.Name)
				s.nodeChanged(ctx, informer.Deleted, node, node)
			}
		},
	})
	return errors.Join(podErr, nodeErr)
}

// deleted is the object of a delete event, which may have been missed and be known by its last state only.
func deleted[T any](object any) (T, bool) {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	typed, ok := object.(T)
	return typed, ok
}

// podChanged has a pod looked at, and its node if the pod decides whether that one is lost. A pod
// that was replaced by one of the same name may come as a change.
func (s *simulation) podChanged(old, pod *corev1.Pod) {
	if old != nil && (pod == nil || pod.UID != old.UID) {
		s.kubelet.addresses.release(string(old.UID))
	}
	for _, version := range []*corev1.Pod{old, pod} {
		if version != nil && hasLostBehaviour(version) {
			s.nodeQueue.Add(version.Spec.NodeName)
		}
	}
	if pod != nil {
		s.podQueue.Add(pod.Namespace + "/" + pod.Name)
	}
}

// nodeChanged has a node looked at, and its pods if it came, went silent or came back.
func (s *simulation) nodeChanged(ctx context.Context, kind informer.EventType, old, node *corev1.Node) {
	s.player.tell(ctx, kind, node)
	s.nodeQueue.Add(node.Name)
	if old != nil && isLost(old) == isLost(node) && hostIP(old) == hostIP(node) {
		return
	}
	for _, pod := range s.podsOn(node.Name) {
		s.podQueue.Add(pod.Namespace + "/" + pod.Name)
	}
}

func (s *simulation) podsOn(node string) []*corev1.Pod {
	objects, _ := s.pods.GetIndexer().ByIndex(byNode, node) // fails only for an unknown index
	pods := make([]*corev1.Pod, 0, len(objects))
	for _, object := range objects {
		pods = append(pods, object.(*corev1.Pod))
	}
	return pods
}

// occupyAddresses takes the addresses that pods have from before a restart.
func (s *simulation) occupyAddresses() {
	for _, object := range s.pods.GetStore().List() {
		pod := object.(*corev1.Pod)
		s.kubelet.addresses.occupy(string(pod.UID), pod.Status.PodIP)
	}
}

// syncNode decides whether a node is lost and lets its lease live or die accordingly.
func (s *simulation) syncNode(ctx context.Context, name string) (time.Duration, error) {
	node, exists := fromStore[*corev1.Node](s.nodes.GetStore(), name)
	if !exists {
		s.player.leases.ReleaseHold(name)
		return 0, nil
	}
	now := time.Now()
	want, change := wantLost(node, s.podsOn(name), now)
	if want != nil {
		s.player.leases.ReleaseHold(name)
	} else {
		s.player.leases.TryHold(name)
	}
	if patch := lostPatch(node, want); patch != nil {
		data, err := json.Marshal(patch)
		if err != nil {
			return 0, fmt.Errorf("changing condition %s of node %s: %w", Lost, name, err)
		}
		_, err = s.client.CoreV1().Nodes().PatchStatus(ctx, name, data)
		if err != nil && !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("changing condition %s of node %s: %w", Lost, name, err)
		}
		if want != nil && !isLost(node) {
			s.kubelet.events.nodeLost(node)
		}
	}
	if change.IsZero() {
		return 0, nil
	}
	return max(change.Sub(now), time.Millisecond), nil
}
