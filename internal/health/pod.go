// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health describes the state of pods and Deployments: why a pod is not ready, and how far a rollout is. It
// does not depend on the controllers and commands that use it.
package health

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Trouble is what keeps a pod from becoming ready, in the pod's own words.
//
//nolint:errname // it is a fact about a pod, which can be the reason of an outcome
type Trouble struct {
	Pod     string
	Reason  string
	Message string
}

// Error returns the full text, for messages in conditions.
func (t *Trouble) Error() string {
	if t.Message == "" {
		return fmt.Sprintf("pod %s: %s", t.Pod, t.Reason)
	}
	return fmt.Sprintf("pod %s: %s: %s", t.Pod, t.Reason, t.Message)
}

// Kind is the reason without the back and forth of a pod that tries again and again, so that it can be compared.
func (t *Trouble) Kind() string {
	switch t.Reason {
	case "ErrImagePull":
		return "ImagePullBackOff"
	case "RunContainerError", "StartError":
		return "CrashLoopBackOff"
	default:
		return t.Reason
	}
}

// hopeful are the reasons for which containers wait in the normal course of things.
var hopeful = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true}

// TroubleOf returns the problem of a pod, or nil if it is ready or in progress.
func TroubleOf(pod *corev1.Pod) *Trouble {
	if pod.Status.Phase == corev1.PodFailed {
		return &Trouble{Pod: pod.Name, Reason: cmp.Or(pod.Status.Reason, "Failed"), Message: cmp.Or(pod.Status.Message, exitOf(pod))}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if waiting := status.State.Waiting; waiting != nil && !hopeful[waiting.Reason] {
				return &Trouble{Pod: pod.Name, Reason: waiting.Reason, Message: waiting.Message}
			}
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return &Trouble{Pod: pod.Name, Reason: condition.Reason, Message: condition.Message}
		}
	}
	return nil
}

// FirstTrouble returns the trouble of the first pod that has any, in the order of their names, so that the answer does
// not change from look to look.
func FirstTrouble(pods []corev1.Pod) *Trouble {
	var first *Trouble
	for i := range pods {
		if trouble := TroubleOf(&pods[i]); trouble != nil && (first == nil || trouble.Pod < first.Pod) {
			first = trouble
		}
	}
	return first
}

// Newest returns the pods that share the value of a label with the youngest of them: those of the latest revision, if
// the label has a revision.
func Newest(pods []corev1.Pod, label string) []corev1.Pod {
	if len(pods) == 0 {
		return nil
	}
	youngest := slices.MaxFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Labels[label], b.Labels[label]))
	})
	var newest []corev1.Pod
	for _, pod := range pods {
		if pod.Labels[label] == youngest.Labels[label] {
			newest = append(newest, pod)
		}
	}
	return newest
}

// IsReady reports whether a pod is ready and not being deleted.
func IsReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Relevant returns the part of a pod's status that this package reads. It is for caches.
func Relevant(status corev1.PodStatus) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: status.Phase, Reason: status.Reason, Message: status.Message,
		Conditions: kept(status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady || c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		}),
		InitContainerStatuses: kept(status.InitContainerStatuses, doesNotRun),
		ContainerStatuses:     kept(status.ContainerStatuses, doesNotRun),
	}
}

func doesNotRun(c corev1.ContainerStatus) bool { return c.State.Running == nil }

// kept returns a copy, so that the rest can be freed.
func kept[T any](all []T, keep func(T) bool) (some []T) {
	for _, one := range all {
		if keep(one) {
			some = append(some, one)
		}
	}
	return some
}

func exitOf(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return fmt.Sprintf("container %s ended with exit code %d", status.Name, ended.ExitCode)
		}
	}
	return ""
}
