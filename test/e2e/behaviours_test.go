// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	allTrue   = "PodScheduled True, PodReadyToStartContainers True, Initialized True, ContainersReady True, Ready True"
	notReady  = "PodScheduled True, PodReadyToStartContainers True, Initialized True, ContainersReady False ContainersNotReady, Ready False ContainersNotReady"
	completed = "PodScheduled True, PodReadyToStartContainers False, Initialized True PodCompleted, ContainersReady False PodCompleted, Ready False PodCompleted"
	failed    = "PodScheduled True, PodReadyToStartContainers False, Initialized True, ContainersReady False PodFailed, Ready False PodFailed"
)

// TestBehaviours has one row for each in docs/behaviours.md: what a controller sees of the pod, in this order,
// its conditions at the end, and the reasons of its events.
func TestBehaviours(t *testing.T) {
	w := newWorld(t)
	const always, onFailure, never = corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	for _, test := range []struct {
		behaviour  string
		policy     corev1.RestartPolicy
		story      []string
		conditions string
		events     []string
	}{
		{"", always, []string{"Running: running, Ready"}, allTrue, nil},
		{"run", always, []string{"Running: running, Ready"}, allTrue, nil},
		{
			"ready-after=2s", always,
			[]string{"Running: running, ContainersNotReady", "Running: running, Ready"},
			allTrue, []string{"Unhealthy"},
		},
		{"never-ready", always, []string{"Running: running, ContainersNotReady"}, notReady, []string{"Unhealthy"}},
		{
			"image-pull-error", always,
			[]string{
				"Pending: ErrImagePull, ContainersNotReady", "Pending: ImagePullBackOff, ContainersNotReady",
				"Pending: ErrImagePull, ContainersNotReady", "Pending: ImagePullBackOff, ContainersNotReady",
			},
			notReady, []string{"Failed", "BackOff"},
		},
		{"complete", never, []string{"Succeeded: Completed 0, PodCompleted"}, completed, nil},
		{"complete", onFailure, []string{"Succeeded: Completed 0, PodCompleted"}, completed, nil},
		{
			"complete", always,
			[]string{
				"Running: Completed 0, ContainersNotReady",
				"Running: running, restart 1 after Completed 0, ContainersNotReady",
				"Running: CrashLoopBackOff, restart 1 after Completed 0, ContainersNotReady",
			},
			notReady, []string{"BackOff"},
		},
		{
			"complete,after=1s", never,
			[]string{"Running: running, Ready", "Succeeded: Completed 0, PodCompleted"}, completed, nil,
		},
		{"exit=3", never, []string{"Failed: Error 3, PodFailed"}, failed, nil},
		{
			"exit=3", onFailure,
			[]string{"Running: Error 3, ContainersNotReady", "Running: CrashLoopBackOff, restart 1 after Error 3, ContainersNotReady"},
			notReady, []string{"BackOff"},
		},
		{"exit=0", never, []string{"Succeeded: Completed 0, PodCompleted"}, completed, nil},
		{"exit=255,after=1s", never, []string{"Running: running, Ready", "Failed: Error 255, PodFailed"}, failed, nil},
		{
			"crash-loop", always,
			[]string{
				"Running: running, ContainersNotReady",
				"Running: Error 1, ContainersNotReady",
				"Running: running, restart 1 after Error 1, ContainersNotReady",
				"Running: Error 1, restart 1 after Error 1, ContainersNotReady",
				"Running: CrashLoopBackOff, restart 1 after Error 1, ContainersNotReady",
				// Ten seconds later.
				"Running: running, restart 2 after Error 1, ContainersNotReady",
				"Running: CrashLoopBackOff, restart 2 after Error 1, ContainersNotReady",
			},
			notReady, []string{"BackOff"},
		},
		{
			"crash-loop,max-backoff=1s", always,
			[]string{
				"Running: CrashLoopBackOff, restart 1 after Error 1, ContainersNotReady",
				"Running: CrashLoopBackOff, restart 2 after Error 1, ContainersNotReady",
				"Running: CrashLoopBackOff, restart 3 after Error 1, ContainersNotReady",
			},
			notReady, []string{"BackOff"},
		},
		{
			"crash-loop,after=1s,max-backoff=1s", always,
			[]string{
				"Running: running, Ready",
				"Running: Error 1, ContainersNotReady",
				"Running: running, restart 1 after Error 1, Ready",
				"Running: CrashLoopBackOff, restart 1 after Error 1, ContainersNotReady",
				"Running: running, restart 2 after Error 1, Ready",
			},
			allTrue, []string{"BackOff"},
		},
		{"dance", always, []string{"Running: running, Ready"}, allTrue, []string{"UnknownBehaviour"}},
		{"exit=300", never, []string{"Running: running, Ready"}, allTrue, []string{"UnknownBehaviour"}},
		{"ready-after=soon", always, []string{"Running: running, Ready"}, allTrue, []string{"UnknownBehaviour"}},
	} {
		t.Run(fmt.Sprintf("%s/%s", test.behaviour, test.policy), func(t *testing.T) {
			t.Parallel()
			made := w.createPod(t, pod(test.behaviour, test.policy))
			seen := w.follow(t, made).expect(t, test.story...)
			if conditions := tellConditions(seen); conditions != test.conditions {
				t.Errorf("its conditions are\n%s, not\n%s", conditions, test.conditions)
			}
			for _, reason := range test.events {
				w.awaitEvent(t, made.Name, reason)
			}
		})
	}
}

func TestBehaviourTakesItsTime(t *testing.T) {
	w := newWorld(t)
	seen := w.startPod(t, "ready-after=3s", corev1.RestartPolicyAlways)
	started := seen.Status.ContainerStatuses[0].State.Running.StartedAt
	// Both times are in whole seconds.
	if took := conditionOf(seen, corev1.PodReady).LastTransitionTime.Sub(started.Time); took < 3*time.Second {
		t.Errorf("it was ready after %v", took)
	}
}

func TestUnknownBehaviourIsExplained(t *testing.T) {
	w := newWorld(t)
	made := w.startPod(t, "dance", corev1.RestartPolicyAlways)
	event := w.awaitEvent(t, made.Name, "UnknownBehaviour")
	for _, part := range []string{`"dance"`, "never-ready", "ready-after=DURATION", "crash-loop", "node-lost"} {
		if !strings.Contains(event.Message, part) {
			t.Errorf("%s is not in the message: %s", part, event.Message)
		}
	}
	if event.Type != corev1.EventTypeWarning {
		t.Errorf("the event is %s", event.Type)
	}
}

// TestBehaviourOfJobs goes through the three kinds of Jobs that the documentation tells of.
func TestBehaviourOfJobs(t *testing.T) {
	w := newWorld(t)
	must(w.BatchV1().Jobs(w.namespace).Create(t.Context(), job("stays", "run", 0), metav1.CreateOptions{}))(t)
	must(w.BatchV1().Jobs(w.namespace).Create(t.Context(), job("ends", "complete,after=1s", 0), metav1.CreateOptions{}))(t)
	w.awaitJob(t, "ends", "Complete")
	stays := must(w.BatchV1().Jobs(w.namespace).Get(t.Context(), "stays", metav1.GetOptions{}))(t)
	if stays.Status.Active != 1 || len(stays.Status.Conditions) != 0 {
		t.Errorf("a Job whose pod runs on is %+v", stays.Status)
	}
}

// TestBehaviourChanges follows pods whose annotation is changed while they run.
func TestBehaviourChanges(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name          string
		before, after string
		from, to      []string
	}{
		{
			"never-ready removed", "never-ready", "",
			[]string{"Running: running, ContainersNotReady"}, []string{"Running: running, Ready"},
		},
		{
			"never-ready added", "", "never-ready",
			[]string{"Running: running, Ready"}, []string{"Running: running, ContainersNotReady"},
		},
		{
			"crash-loop added", "", "crash-loop",
			[]string{"Running: running, Ready"},
			[]string{"Running: Error 1, ContainersNotReady", "Running: CrashLoopBackOff, restart 1 after Error 1, ContainersNotReady"},
		},
		{
			"crash-loop removed", "crash-loop,max-backoff=5m", "",
			[]string{"Running: CrashLoopBackOff, restart 1 after Error 1, ContainersNotReady"},
			[]string{"Running: running, restart 2 after Error 1, Ready"},
		},
		{
			"image-pull-error removed", "image-pull-error", "",
			[]string{"Pending: ErrImagePull, ContainersNotReady"}, []string{"Running: running, Ready"},
		},
		{
			"unknown to known", "dance", "never-ready",
			[]string{"Running: running, Ready"}, []string{"Running: running, ContainersNotReady"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			made := w.createPod(t, pod(test.before, corev1.RestartPolicyAlways))
			f := w.follow(t, made)
			f.expect(t, test.from...)
			w.annotatePod(t, made.Name, test.after)
			f.expect(t, test.to...)
		})
	}
}

func (w *world) changeImage(t *testing.T, name, image string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"containers":[{"name":"main","image":%q}]}}`, image)
	must(w.CoreV1().Pods(w.namespace).Patch(t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}))(t)
}

func TestImageChangesInPlace(t *testing.T) {
	w := newWorld(t)
	for policy, story := range map[corev1.RestartPolicy][]string{
		corev1.RestartPolicyAlways: {"Running: Error 143, ContainersNotReady", "Running: running, restart 1 after Error 143, Ready"},
		// The API server does not allow such a container to run again after it has ended.
		corev1.RestartPolicyNever: {"Running: running, restart 1 after Error 143, Ready"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			before := w.startPod(t, "", policy)
			f := w.follow(t, before)
			w.changeImage(t, before.Name, "app:2")
			after := f.expect(t, story...)
			was, is := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
			if is.Image != "app:2" || is.ImageID == was.ImageID || is.ContainerID == was.ContainerID || was.Image != "app:1" {
				t.Errorf("before it was %+v, after it is %+v", was, is)
			}
			if after.Status.PodIP != before.Status.PodIP {
				t.Errorf("its address changed from %s to %s", before.Status.PodIP, after.Status.PodIP)
			}
			w.awaitEvent(t, before.Name, "Killing")
		})
	}
}

func TestImagePullErrorSparesWhatRuns(t *testing.T) {
	w := newWorld(t)
	before := w.startPod(t, "", corev1.RestartPolicyAlways)
	f := w.follow(t, before)
	w.annotatePod(t, before.Name, "image-pull-error")
	w.changeImage(t, before.Name, "app:2")
	f.expect(t,
		"Running: running, Ready", // the annotation alone changes nothing
		"Running: Error 143, ContainersNotReady",
		"Running: ErrImagePull, ContainersNotReady")
}
