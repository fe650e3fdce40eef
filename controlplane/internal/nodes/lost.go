// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// Lost is the condition of a node that is made to fall silent. It is the one switch: the stages and
// the simulated kubelet look at it and at nothing else, it survives a restart, and its message names
// the pod that is the reason.
const Lost corev1.NodeConditionType = "opdock.dev/Lost"

// IsLost reports whether a node is lost.
func IsLost(node *corev1.Node) bool { return isLost(node) }

func isLost(node *corev1.Node) bool {
	condition := nodeCondition(&node.Status, Lost)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// wantLost returns the Lost condition that a node should have, nil if none, and when that changes
// although nothing else does. A node is lost as long as a pod on it says so, be it Terminating: a
// silent kubelet does not finish the deletion of its pods, which is what makes lost nodes hard.
func wantLost(node *corev1.Node, pods []*corev1.Pod, now time.Time) (*corev1.NodeCondition, time.Time) {
	var culprits []string
	var change time.Time
	for _, pod := range pods {
		lost, until := losesNode(pod, now)
		if lost {
			culprits = append(culprits, pod.Namespace+"/"+pod.Name)
		}
		if !until.IsZero() && (change.IsZero() || until.Before(change)) {
			change = until
		}
	}
	condition := &corev1.NodeCondition{Type: Lost, Status: corev1.ConditionTrue}
	switch {
	case strings.TrimSpace(node.Annotations[Annotation]) == string(KindNodeLost):
		condition.Reason = "NodeBehaviour"
		condition.Message = fmt.Sprintf("the node has the annotation %s: %s", Annotation, KindNodeLost)
	case len(culprits) > 0:
		slices.Sort(culprits)
		condition.Reason = "PodBehaviour"
		condition.Message = fmt.Sprintf("caused by the annotation %s: %s of pod %s", Annotation, KindNodeLost, strings.Join(culprits, ", "))
	default:
		return nil, change
	}
	condition.LastHeartbeatTime = metav1.NewTime(now)
	condition.LastTransitionTime = transition(node.Status.Conditions, *condition, now)
	return condition, change
}

// losesNode reports whether a pod makes its node fall silent now, and when that changes by itself.
// The pod has to run first: a pod cannot take its node away before it is there.
func losesNode(pod *corev1.Pod, now time.Time) (bool, time.Time) {
	if !hasLostBehaviour(pod) || podutil.IsPodTerminal(pod) {
		return false, time.Time{}
	}
	started := startedAt(pod)
	if started.IsZero() {
		return false, time.Time{}
	}
	b, _ := behaviourOf(pod)
	from := due(started, b.After)
	until := due(started, b.After+b.For)
	switch {
	case now.Before(from):
		return false, from
	case b.For == 0:
		return true, time.Time{}
	case now.Before(until):
		return true, until
	default:
		return false, time.Time{}
	}
}

func hasLostBehaviour(pod *corev1.Pod) bool {
	if _, annotated := pod.Annotations[Annotation]; !annotated {
		return false
	}
	b, err := behaviourOf(pod)
	return err == nil && b.Kind == KindNodeLost
}

// startedAt is when the pod's containers were all running, zero before.
func startedAt(pod *corev1.Pod) metav1.Time {
	var last metav1.Time
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running == nil {
			return metav1.Time{}
		}
		if last.Before(&status.State.Running.StartedAt) {
			last = status.State.Running.StartedAt
		}
	}
	return last
}

// lostPatch turns the Lost condition of a node into the wanted one; nil if it is so already.
func lostPatch(node *corev1.Node, want *corev1.NodeCondition) map[string]any {
	have := nodeCondition(&node.Status, Lost)
	var entry any
	switch {
	case want == nil && have == nil:
		return nil
	case want == nil:
		entry = map[string]any{"$patch": "delete", "type": Lost}
	case have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message:
		return nil
	default:
		entry = want
	}
	return map[string]any{"status": map[string]any{"conditions": []any{entry}}}
}
