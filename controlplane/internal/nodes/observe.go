// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubeletstatus "k8s.io/kubernetes/pkg/kubelet/status"
)

// report is what a kubelet has to say about a pod at one moment.
type report struct {
	status corev1.PodStatus
	events []event
	// wake is when to look again although nothing has changed; zero if only a change can matter.
	wake time.Time
}

// event is an Event of the pod, without the fields that every event of a pod shares.
type event struct {
	kind, reason, message string
}

// place is where a pod runs, as far as its status shows it.
type place struct {
	hostIP, podIP string
}

// observe returns what a kubelet would report next about a pod that is bound to its node, not
// finished and not being deleted. It takes one step at a time: a container that crashes and starts
// again is terminated in one report and running in the next, because controllers rely on seeing both.
func observe(pod *corev1.Pod, behaviour Behaviour, at place, now time.Time) report {
	o := &observation{pod: pod, behaviour: behaviour, now: now}
	status := pod.Status.DeepCopy()
	if status.StartTime == nil {
		status.StartTime = &metav1.Time{Time: now}
	}
	status.HostIP, status.HostIPs = at.hostIP, []corev1.HostIP{{IP: at.hostIP}}
	status.PodIP, status.PodIPs = at.podIP, []corev1.PodIP{{IP: at.podIP}}
	o.started = status.StartTime.Time
	if o.pastDeadline() {
		o.stopAll(status)
		status.Reason, status.Message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
		o.conclude(status, corev1.PodFailed)
		return report{status: *status}
	}

	status.ContainerStatuses = o.containers(status.ContainerStatuses)
	status.InitContainerStatuses = o.initContainers(status.InitContainerStatuses, o.finished(status.ContainerStatuses))
	o.conclude(status, phaseOf(&pod.Spec, status, false))
	return report{status: *status, events: o.events, wake: o.wake}
}

// stopped returns the last report about a pod that is being deleted: a kubelet stops the containers
// and reports a final phase before it lets the pod go, which is what the Job controller waits for.
func stopped(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	o := &observation{pod: pod, now: now}
	status := pod.Status.DeepCopy()
	o.stopAll(status)
	o.conclude(status, phaseOf(&pod.Spec, status, true))
	return *status
}

// unreachable returns the status of a pod whose node is lost: the node lifecycle controller marks it
// not ready, and the rest stays.
func unreachable(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	status := pod.Status.DeepCopy()
	if _, ready := podutil.GetPodCondition(status, corev1.PodReady); ready != nil {
		notReady := *ready
		notReady.Status = corev1.ConditionFalse
		setCondition(status, notReady, now)
	}
	return *status
}

// observation is one look at one pod.
type observation struct {
	pod       *corev1.Pod
	behaviour Behaviour
	now       time.Time
	started   time.Time // when the pod arrived on its node
	events    []event
	wake      time.Time
}

// pastDeadline reports whether the pod has used up the time that its spec allows it.
func (o *observation) pastDeadline() bool {
	seconds := o.pod.Spec.ActiveDeadlineSeconds
	if seconds == nil {
		return false
	}
	end := due(metav1.NewTime(o.started), time.Duration(*seconds)*time.Second)
	if o.now.Before(end) {
		o.lookAgain(end)
		return false
	}
	return true
}

func (o *observation) stopAll(status *corev1.PodStatus) {
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			if list[i].State.Running != nil {
				list[i] = o.stop(list[i], exitCodeSIGTERM)
			}
		}
	}
}

// conclude derives from the container statuses what the status says about the whole pod.
func (o *observation) conclude(status *corev1.PodStatus, phase corev1.PodPhase) {
	pod := o.pod
	status.Phase = phase
	all := append(append([]corev1.ContainerStatus{}, status.InitContainerStatuses...), status.ContainerStatuses...)
	sandbox := corev1.ConditionTrue
	if podutil.IsPodPhaseTerminal(phase) {
		sandbox = corev1.ConditionFalse
	}
	conditions := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: sandbox},
		kubeletstatus.GeneratePodInitializedCondition(pod, &pod.Status, all, phase),
		kubeletstatus.GeneratePodReadyCondition(pod, &pod.Status, status.Conditions, all, phase),
		kubeletstatus.GenerateContainersReadyCondition(pod, &pod.Status, all, phase),
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = podutil.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, condition.Type)
		setCondition(status, condition, o.now)
	}
	status.ObservedGeneration = podutil.CalculatePodStatusObservedGeneration(pod)
}

// setCondition puts a condition in its place; its time of transition stays while its status does.
func setCondition(status *corev1.PodStatus, condition corev1.PodCondition, now time.Time) {
	condition.LastTransitionTime = metav1.NewTime(now)
	index, old := podutil.GetPodCondition(status, condition.Type)
	if old == nil {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	condition.LastProbeTime = old.LastProbeTime
	if old.Status == condition.Status {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	status.Conditions[index] = condition
}

// phaseOf follows the kubelet. Init containers play no part: here they have always completed.
// final says that nothing is going to be started again.
func phaseOf(spec *corev1.PodSpec, status *corev1.PodStatus, final bool) corev1.PodPhase {
	running, failed, restarting := false, false, false
	for i := range spec.Containers {
		container, found := podutil.GetContainerStatus(status.ContainerStatuses, spec.Containers[i].Name)
		ended := container.State.Terminated
		if container.State.Waiting != nil {
			ended = container.LastTerminationState.Terminated
		}
		switch {
		case !found:
			return corev1.PodPending
		case container.State.Running != nil:
			running = true
		case ended == nil:
			return corev1.PodPending
		default:
			failed = failed || ended.ExitCode != 0
			restarting = restarting || willRestart(&spec.Containers[i], spec, &container)
		}
	}
	switch {
	case running, restarting && !final:
		return corev1.PodRunning
	case failed:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}

// lookAgain asks for another look at a moment, unless an earlier one is asked for already.
func (o *observation) lookAgain(at time.Time) {
	if o.wake.IsZero() || at.Before(o.wake) {
		o.wake = at
	}
}

// due is when a delay that began at a time from a status is over. Statuses hold whole seconds, so
// the delay may have begun up to a second later than it says: better late than early.
func due(since metav1.Time, delay time.Duration) time.Time {
	if delay == 0 {
		return since.Time
	}
	return since.Add(delay + time.Second)
}
