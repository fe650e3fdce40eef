// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// exitCodeSIGTERM is the exit code of a container that is stopped.
const exitCodeSIGTERM = 143

// What a kubelet writes as the reason of a waiting container.
const (
	reasonCrashLoop     = "CrashLoopBackOff"
	reasonPullError     = "ErrImagePull"
	reasonPullBackOff   = "ImagePullBackOff"
	firstBackoff        = 10 * time.Second
	pullErrorIsVisible  = 2 * time.Second // then the kubelet calls it a back-off
	reasonEndedWell     = "Completed"
	reasonEndedBadly    = "Error"
	containerRuntimeURI = "containerd://"
)

// containers takes every container of the pod one step on.
func (o *observation) containers(old []corev1.ContainerStatus) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, 0, len(o.pod.Spec.Containers))
	for i := range o.pod.Spec.Containers {
		container := &o.pod.Spec.Containers[i]
		statuses = append(statuses, o.step(container, o.behaviour, podutil.GetExistingContainerStatus(old, container.Name)))
	}
	return statuses
}

// initContainers has completed all init containers from the beginning and lets sidecars run as long
// as the pod does; the behaviour of the pod is not theirs.
func (o *observation) initContainers(old []corev1.ContainerStatus, podFinished bool) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for i := range o.pod.Spec.InitContainers {
		container := &o.pod.Spec.InitContainers[i]
		status := podutil.GetExistingContainerStatus(old, container.Name)
		switch {
		case podutil.IsRestartableInitContainer(container) && podFinished:
			if status.State.Running != nil {
				status = o.stop(status, 0)
			}
		case podutil.IsRestartableInitContainer(container):
			status = o.step(container, Behaviour{Kind: KindRun}, status)
		case status.State.Terminated == nil:
			status = o.stop(o.start(container, Behaviour{Kind: KindRun}, status), 0)
			status.Ready = true // which is how a kubelet says that an init container has done its work
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// finished reports whether all containers have ended for good.
func (o *observation) finished(statuses []corev1.ContainerStatus) bool {
	for i := range statuses {
		if statuses[i].State.Terminated == nil || willRestart(&o.pod.Spec.Containers[i], &o.pod.Spec, &statuses[i]) {
			return false
		}
	}
	return true
}

// willRestart reports whether a container that has ended starts again, be it by the restart policy or
// because it was only stopped to make place for another image.
func willRestart(container *corev1.Container, spec *corev1.PodSpec, status *corev1.ContainerStatus) bool {
	ended := status.State.Terminated
	if ended == nil {
		ended = status.LastTerminationState.Terminated
	}
	return isReplaced(container, status) || podutil.ContainerShouldRestart(*container, *spec, ended.ExitCode)
}

// isReplaced reports whether a container was stopped because its image changed and has not started
// with the new one yet. A kubelet does that whatever the restart policy says.
func isReplaced(container *corev1.Container, status *corev1.ContainerStatus) bool {
	ended := status.State.Terminated
	if status.State.Waiting != nil {
		ended = status.LastTerminationState.Terminated
	}
	return ended != nil && ended.ExitCode == exitCodeSIGTERM && status.Image != container.Image
}

// step takes one container one step on.
func (o *observation) step(container *corev1.Container, b Behaviour, status corev1.ContainerStatus) corev1.ContainerStatus {
	switch {
	case status.State.Running != nil:
		return o.fromRunning(container, b, status)
	case status.State.Terminated != nil:
		return o.fromTerminated(container, b, status)
	default:
		return o.fromWaiting(container, b, status)
	}
}

func (o *observation) fromRunning(container *corev1.Container, b Behaviour, status corev1.ContainerStatus) corev1.ContainerStatus {
	if status.Image != container.Image {
		o.event(corev1.EventTypeNormal, "Killing", "Container %s definition changed, will be restarted", container.Name)
		stopped := o.stop(status, exitCodeSIGTERM)
		if o.pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			// The API lets no container of such a pod leave the terminated state, so it must not be seen.
			return o.fromTerminated(container, b, stopped)
		}
		return stopped
	}
	startedAt := status.State.Running.StartedAt
	if b.Kind == KindExit {
		end := due(startedAt, b.After)
		if !o.now.Before(end) {
			return o.stop(status, b.ExitCode)
		}
		o.lookAgain(end)
	}
	status.Ready = o.ready(b, startedAt)
	status.Resources, status.AllocatedResources = resourcesOf(container)
	return status
}

func (o *observation) fromTerminated(container *corev1.Container, b Behaviour, status corev1.ContainerStatus) corev1.ContainerStatus {
	if !willRestart(container, &o.pod.Spec, &status) {
		return status
	}
	// The first restart comes at once, as the kubelet's back-off begins with the second.
	backOff := b.Kind == KindExit && status.RestartCount > 0 && !isReplaced(container, &status)
	status.LastTerminationState, status.State = status.State, corev1.ContainerState{}
	if !backOff {
		return o.fromWaiting(container, b, status)
	}
	pause := backoffAfter(int(status.RestartCount)-1, b.MaxBackoff)
	podName := fmt.Sprintf("%s_%s(%s)", o.pod.Name, o.pod.Namespace, o.pod.UID)
	o.event(corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s in pod %s", container.Name, podName)
	o.lookAgain(due(status.LastTerminationState.Terminated.FinishedAt, pause))
	return waiting(status, reasonCrashLoop, fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", pause, container.Name, podName))
}

func (o *observation) fromWaiting(container *corev1.Container, b Behaviour, status corev1.ContainerStatus) corev1.ContainerStatus {
	if b.Kind == KindImagePullError {
		return o.failPull(container, status)
	}
	if b.Kind == KindExit && isBackingOff(container, &status) {
		last := status.LastTerminationState.Terminated
		end := due(last.FinishedAt, backoffAfter(int(status.RestartCount)-1, b.MaxBackoff))
		if o.now.Before(end) {
			o.lookAgain(end)
			return status
		}
	}
	return o.start(container, b, status)
}

// isBackingOff reports whether a container waits to be restarted. With another image it is another
// container, which has not failed yet.
func isBackingOff(container *corev1.Container, status *corev1.ContainerStatus) bool {
	return status.State.Waiting != nil && status.State.Waiting.Reason == reasonCrashLoop &&
		status.LastTerminationState.Terminated != nil && status.Image == container.Image
}

// start makes a container run; started before, it counts one restart.
func (o *observation) start(container *corev1.Container, b Behaviour, old corev1.ContainerStatus) corev1.ContainerStatus {
	restarts := old.RestartCount
	if old.LastTerminationState.Terminated != nil {
		restarts++
	}
	now := metav1.NewTime(o.now)
	status := corev1.ContainerStatus{
		Name:                 container.Name,
		State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		LastTerminationState: old.LastTerminationState,
		Ready:                o.ready(b, now),
		RestartCount:         restarts,
		Image:                container.Image,
		ImageID:              imageID(container.Image),
		ContainerID:          containerRuntimeURI + digest(fmt.Sprintf("%s/%s/%d", o.pod.UID, container.Name, restarts)),
		Started:              new(true),
	}
	status.Resources, status.AllocatedResources = resourcesOf(container)
	if b.Kind == KindNeverReady || b.Kind == KindReadyAfter && !status.Ready {
		o.event(corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: container %s is not ready by its behaviour", container.Name)
	}
	return status
}

// ready reports whether a running container is. A container that exits at once is not: it ends before the first
// probe, and a pod that is ready for a moment would let a broken rollout continue.
func (o *observation) ready(b Behaviour, startedAt metav1.Time) bool {
	switch b.Kind {
	case KindNeverReady:
		return false
	case KindReadyAfter:
		end := due(startedAt, b.After)
		if o.now.Before(end) {
			o.lookAgain(end)
			return false
		}
		return true
	case KindExit:
		return b.After > 0
	default:
		return true
	}
}

// stop ends a running container.
func (o *observation) stop(status corev1.ContainerStatus, exitCode int32) corev1.ContainerStatus {
	reason := reasonEndedWell
	if exitCode != 0 {
		reason = reasonEndedBadly
	}
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode:    exitCode,
		Reason:      reason,
		StartedAt:   status.State.Running.StartedAt,
		FinishedAt:  metav1.NewTime(o.now),
		ContainerID: status.ContainerID,
	}}
	status.Ready, status.Started = false, new(false)
	return status
}

// failPull keeps a container waiting for its image. The attempts follow the pod's age, since a
// waiting container does not say since when it waits.
func (o *observation) failPull(container *corev1.Container, status corev1.ContainerStatus) corev1.ContainerStatus {
	reason, next := pullAttempt(o.now.Sub(o.started))
	o.lookAgain(o.started.Add(next))

	failure := fmt.Sprintf("rpc error: code = NotFound desc = failed to pull and unpack image %q: not found", container.Image)
	message := failure
	if reason == reasonPullBackOff {
		message = fmt.Sprintf("Back-off pulling image %q: %s: %s", container.Image, reasonPullError, failure)
	}
	if status.State.Waiting == nil || status.State.Waiting.Reason != reason {
		if reason == reasonPullError {
			o.event(corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %s", container.Image, failure)
		} else {
			o.event(corev1.EventTypeNormal, "BackOff", "Back-off pulling image %q", container.Image)
		}
		o.event(corev1.EventTypeWarning, "Failed", "Error: %s", reason)
	}
	if status.LastTerminationState.Terminated == nil {
		status.Image = container.Image
	}
	status.Name = container.Name
	return waiting(status, reason, message)
}

// pullAttempt returns how a container waits for its image at an age of its pod, and at which age that changes.
func pullAttempt(age time.Duration) (reason string, changesAt time.Duration) {
	var attempt time.Duration
	for failures := 0; ; failures++ {
		next := attempt + backoffAfter(failures, defaultMaxBackoff)
		switch {
		case age < attempt+pullErrorIsVisible:
			return reasonPullError, attempt + pullErrorIsVisible
		case age < next:
			return reasonPullBackOff, next
		}
		attempt = next
	}
}

// waiting turns a container's status into a waiting one.
func waiting(status corev1.ContainerStatus, reason, message string) corev1.ContainerStatus {
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	status.Ready, status.Started = false, new(false)
	return status
}

// backoffAfter is the kubelet's pause after a number of earlier pauses: 10 s, doubled each time, up to a limit.
func backoffAfter(pauses int, limit time.Duration) time.Duration {
	pause := firstBackoff
	for ; pauses > 0 && pause < limit; pauses-- {
		pause *= 2
	}
	return min(pause, limit)
}

// resourcesOf reports the resources a container asks for as the ones it has: a resize takes effect at once.
func resourcesOf(container *corev1.Container) (*corev1.ResourceRequirements, corev1.ResourceList) {
	return container.Resources.DeepCopy(), container.Resources.Requests.DeepCopy()
}

// imageID makes up the digest of an image, unless the image is named by its digest already.
func imageID(image string) string {
	if strings.Contains(image, "@") {
		return image
	}
	repository := image
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		repository = image[:colon]
	}
	return repository + "@sha256:" + digest(image)
}

func digest(of string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(of)))
}

func (o *observation) event(kind, reason, format string, arguments ...any) {
	o.events = append(o.events, event{kind: kind, reason: reason, message: fmt.Sprintf(format, arguments...)})
}
