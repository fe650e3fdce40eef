// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/opdock/opdock/internal/health"
)

const (
	// labelRevision is the label of a pod with the hash of the revision that it follows.
	labelRevision = appsv1.ControllerRevisionHashLabelKey
	// labelOrdinal is the label of a pod with its number.
	labelOrdinal = appsv1.PodIndexLabel
	// annotationRenewal is on pods whose images were changed, with the containers as they were before.
	annotationRenewal = "opdock.dev/in-place-update"
)

// member is a pod of a PodCluster and what its state means.
type member struct {
	pod     *corev1.Pod
	ordinal int
	// hash is the hash of the revision that it follows; empty if that is unknown. It is the one of its label until findDrift.
	hash string
	// terminating means that its deletion was requested.
	terminating bool
	// ended means that its containers have stopped and will not start again.
	ended bool
	// renewing means that its images were changed and the kubelet has not acted upon that yet.
	renewing bool
	// ready is about the images that it should have.
	ready bool
	// since is when it became ready if it is, and since when it is not if it is not.
	since time.Time
	// begun is when its images were last changed, if they ever were.
	begun time.Time
	// drift is the drift of the pod; nil if there is none. Set by findDrift.
	drift *podDrift
	// metadataContested and specContested mean that the correction of its metadata or of the rest has to wait. Set by makePlan.
	metadataContested, specContested bool
}

// memberOf returns nil for a pod whose name does not match the PodCluster.
func memberOf(name string, pod *corev1.Pod) *member {
	ordinal, ok := ordinalOf(name, pod.Name)
	if !ok {
		return nil
	}
	m := &member{
		pod: pod, ordinal: ordinal, hash: pod.Labels[labelRevision],
		terminating: !pod.DeletionTimestamp.IsZero(),
		ended:       pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded,
		since:       pod.CreationTimestamp.Time,
	}
	m.begun, m.renewing = renewalOf(pod)
	m.ready = health.IsReady(pod) && !m.ended && !m.renewing
	if condition := readyCondition(pod); condition != nil && (condition.Status == corev1.ConditionTrue) == m.ready {
		m.since = condition.LastTransitionTime.Time
	}
	return m
}

// clockSkew is how far the clock of another manager, which has changed the images of a pod, may be ahead.
const clockSkew = time.Minute

// deadline returns when a pod that is not ready is replaced. A pod that was broken before its images were changed gets the
// full time to become ready with the new ones.
func (m *member) deadline(allowed time.Duration, now time.Time) time.Time {
	if m.begun.After(m.since) && m.begun.Before(now.Add(clockSkew)) {
		return m.begun.Add(allowed)
	}
	return m.since.Add(allowed)
}

// available reports whether the pod has been ready for long enough, and if that is only a matter of time, when it will be.
func (m *member) available(minReady time.Duration, now time.Time) (is bool, at time.Time) {
	if !m.ready {
		return false, time.Time{}
	}
	at = m.since.Add(minReady)
	return !now.Before(at), at
}

func readyCondition(pod *corev1.Pod) *corev1.PodCondition {
	index := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if index < 0 {
		return nil
	}
	return &pod.Status.Conditions[index]
}

// podName is the name of the pod with a number.
func podName(cluster string, ordinal int) string { return cluster + "-" + strconv.Itoa(ordinal) }

// ordinalOf is strict: a PodCluster does not call any of its pods NAME-01.
func ordinalOf(cluster, pod string) (int, bool) {
	suffix, found := strings.CutPrefix(pod, cluster+"-")
	if !found {
		return 0, false
	}
	ordinal, err := strconv.Atoi(suffix)
	if err != nil || ordinal < 0 || podName(cluster, ordinal) != pod {
		return 0, false
	}
	return ordinal, true
}

// renewal is the value of annotationRenewal. A kubelet gives a container a new ID at each start, even if the new
// image is the old one under another name. So the IDs show whether it has acted, and the reported images would not.
type renewal struct {
	// Begun is when the images were changed.
	Begun time.Time `json:"begun"`
	// Before are the changed containers by their names.
	Before map[string]runningContainer `json:"before"`
}

// runningContainer is a container as its kubelet started it.
type runningContainer struct {
	// ID is empty if it did not run.
	ID    string `json:"id,omitempty"`
	Image string `json:"image"`
}

// renewalOf returns when the images of a pod were last changed, and whether the change is still in progress.
func renewalOf(pod *corev1.Pod) (begun time.Time, goesOn bool) {
	note := readRenewal(pod)
	return note.Begun, slices.ContainsFunc(pod.Spec.Containers, func(container corev1.Container) bool {
		before, changed := note.Before[container.Name]
		// If the image was changed back before the kubelet acted, there is nothing to wait for.
		return changed && before.ID == containerID(pod, container.Name) && before.Image != container.Image
	})
}

// renewalText is annotationRenewal in an entry of the managed fields.
const renewalText = `"f:` + annotationRenewal + `":{}`

// readRenewal returns an empty note if there is none, or if it cannot be read or is not ours: with the note of another writer, a pod
// that is well could wait for its kubelet until it is replaced. If another writer has changed ours, the worst that follows is that
// the pod counts as available a moment too early.
func readRenewal(pod *corev1.Pod) renewal {
	var note renewal
	if pod.Annotations[annotationRenewal] == "" || !ownsText(pod, renewalText) {
		return renewal{}
	}
	if err := json.Unmarshal([]byte(pod.Annotations[annotationRenewal]), &note); err != nil {
		return renewal{}
	}
	return note
}

func containerID(pod *corev1.Pod, name string) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status.ContainerID
		}
	}
	return ""
}

// reportedImage is the image that a container runs, as its kubelet names it.
func reportedImage(pod *corev1.Pod, name string) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status.Image
		}
	}
	return ""
}

// familiar is the short name of an image, which kubelets report by its long one.
func familiar(image string) string {
	image = strings.TrimPrefix(strings.TrimPrefix(image, "docker.io/"), "library/")
	return strings.TrimSuffix(image, ":latest")
}
