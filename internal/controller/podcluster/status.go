// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
)

// ReasonPodNotTerminating means that the deletion of a pod is overdue: its node does not respond, or a finalizer
// blocks it.
const ReasonPodNotTerminating = "PodNotTerminating"

// ReasonUnknownRevision means that a pod follows no revision that is known, and that the update strategy keeps it.
const ReasonUnknownRevision = "UnknownRevision"

// setStatus counts the pods.
func setStatus(s *scope) {
	status, w := &s.cluster.Status, &s.world
	status.Selector = labels.SelectorFromSet(selector(s.cluster)).String()
	if w.update == nil {
		// The reconcile ended before the pods and revisions were known.
		return
	}
	status.CurrentRevision, status.UpdateRevision = w.current.object.Name, w.update.object.Name
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0
	status.CurrentReplicas, status.UpdatedReplicas = 0, 0
	for _, m := range w.members {
		status.Replicas++
		if m.terminating {
			continue
		}
		if m.ready {
			status.ReadyReplicas++
		}
		if is, _ := m.available(w.minReady, w.now); is {
			status.AvailableReplicas++
		}
		if m.hash == w.current.hash {
			status.CurrentReplicas++
		}
		if m.hash == w.update.hash {
			status.UpdatedReplicas++
		}
	}
}

// isComplete reports whether no update is in progress: all pods exist, are available and have the update revision.
func isComplete(w *world) bool {
	complete := 0
	for _, m := range w.members {
		if is, _ := m.available(w.minReady, w.now); is && m.ordinal < w.replicas && m.hash == w.update.hash {
			complete++
		}
	}
	return complete == w.replicas
}

// verdict returns the progress of the pods as an outcome.
func verdict(w *world) error {
	updated, available, outdated, leaving := 0, 0, 0, 0
	drift, unknown := "", ""
	var stuck, broken []corev1.Pod
	for _, m := range w.members {
		if m.terminating && !w.now.Before(overdueAt(m)) {
			stuck = append(stuck, *m.pod)
		}
		if m.ordinal >= w.replicas {
			leaving++
			continue
		}
		if is, _ := m.available(w.minReady, w.now); is {
			available++
		} else if !m.terminating {
			broken = append(broken, *m.pod)
		}
		if m.hash == w.update.hash {
			updated++
		}
		if w.outdated(m) {
			outdated++
		}
		if !m.terminating && w.unknown(m) {
			unknown = cmp.Or(unknown, m.pod.Name)
		}
		if !m.terminating && m.drift.ofSpec() {
			drift = cmp.Or(drift, fmt.Sprintf("pod %s differs from its template, and will be corrected: %s", m.pod.Name, m.drift.text()))
		}
	}
	switch trouble := health.FirstTrouble(broken); {
	case len(stuck) > 0:
		return flow.Stalled(ReasonPodNotTerminating, errors.New(stuckMessage(&stuck[0])))
	case available == w.replicas && outdated == 0 && leaving == 0 && drift != "":
		return flow.Waiting("CorrectingDrift", "%s", drift)
	case available == w.replicas && outdated == 0 && leaving == 0 && unknown != "":
		return flow.Stalled(ReasonUnknownRevision, fmt.Errorf("pod %s follows no known revision, so it cannot be compared with its template; "+
			"delete it to replace it", unknown))
	case available == w.replicas && outdated == 0 && leaving == 0:
		return nil
	case trouble != nil:
		return flow.Stalled(trouble.Kind(), trouble)
	case leaving == 1 && available == w.replicas && outdated == 0:
		return flow.Waiting("ScalingDown", "1 surplus pod is terminating")
	case leaving > 0 && available == w.replicas && outdated == 0:
		return flow.Waiting("ScalingDown", "%d surplus pods are terminating", leaving)
	case outdated > 0 || w.current != w.update:
		return flow.Waiting("RollingOut", "%d of %d pods are updated, %d are available", updated, w.replicas, available)
	default:
		return flow.Waiting("PodsNotAvailable", "%d of %d pods are available", available, w.replicas)
	}
}

// maxNamed is how many pods a message names.
const maxNamed = 5

// left describes the pods that keep an older template because of the update strategy; "" if there are none.
func left(w *world) string {
	var names []string
	for _, m := range w.ascending() {
		if m.ordinal < w.replicas && !m.terminating && m.hash != w.update.hash {
			names = append(names, m.pod.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	count := len(names)
	if count > maxNamed {
		names = append(names[:maxNamed], "…")
	}
	why := fmt.Sprintf("updateStrategy.partition %d keeps them", w.partition)
	if w.onDelete {
		why = "updateStrategy OnDelete keeps them until they are deleted"
	}
	return fmt.Sprintf("%d of %d pods run an older template, %s: %s", count, w.replicas, why, strings.Join(names, ", "))
}

func stuckMessage(pod *corev1.Pod) string {
	since := pod.DeletionTimestamp.UTC().Format(time.RFC3339)
	if len(pod.Finalizers) > 0 {
		return fmt.Sprintf("pod %s has been overdue for deletion since %s because of its finalizers: %v", pod.Name, since, pod.Finalizers)
	}
	return fmt.Sprintf("pod %s has been overdue for deletion since %s: node %s does not confirm that it stopped; its name is free again when the node "+
		"is back, when the Node is deleted, or when the Node has the taint %s", pod.Name, since, pod.Spec.NodeName, corev1.TaintNodeOutOfService)
}
