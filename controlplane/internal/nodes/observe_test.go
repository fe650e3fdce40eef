// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// Every behaviour must have a story, or it is not tested.
func TestEveryBehaviourHasAStory(t *testing.T) {
	told := map[string]bool{}
	for _, s := range stories {
		name, _, _ := strings.Cut(s.annotation, ",")
		name, _, _ = strings.Cut(name, "=")
		told[name] = true
	}
	for name := range forms {
		if !told[name] {
			t.Errorf("no story of %s", name)
		}
	}
}

func TestDeletedPodEndsInAFinalPhase(t *testing.T) {
	for name, test := range map[string]struct {
		story story
		want  corev1.PodPhase
	}{
		"running":                  {story{}, corev1.PodFailed},
		"waiting after a crash":    {story{annotation: "crash-loop"}, corev1.PodFailed},
		"waiting after an end":     {story{annotation: "complete"}, corev1.PodSucceeded},
		"waiting for its image":    {story{annotation: "image-pull-error"}, corev1.PodPending},
		"running beside a sidecar": {story{pod: stories["run-with-init-container-and-sidecar"].pod}, corev1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			pod := boundPod(test.story.annotation, "")
			if test.story.pod != nil {
				test.story.pod(pod)
			}
			settle(t, pod, epoch)
			final := stopped(pod, epoch)
			if final.Phase != test.want {
				t.Errorf("phase = %s; want %s", final.Phase, test.want)
			}
			for _, container := range append(final.InitContainerStatuses, final.ContainerStatuses...) {
				if container.State.Running != nil || container.Ready && container.State.Terminated == nil {
					t.Errorf("container %s is still %s", container.Name, stateOf(container))
				}
			}
		})
	}
}

// settle lets reports follow each other until nothing changes.
func settle(t *testing.T, pod *corev1.Pod, now time.Time) {
	t.Helper()
	behaviour, err := behaviourOf(pod)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		next := stored(t, observe(pod, behaviour, place{"10.64.0.1", "10.128.0.1"}, now).status)
		if apiequality.Semantic.DeepEqual(next, pod.Status) {
			return
		}
		pod.Status = next
	}
	t.Fatal("the status does not settle")
}

func TestUnreachablePodIsNotReadyAndOtherwiseAsItWas(t *testing.T) {
	pod := boundPod("", "")
	settle(t, pod, epoch)
	before := pod.Status.DeepCopy()
	later := epoch.Add(time.Minute)
	pod.Status = unreachable(pod, later)
	for _, condition := range pod.Status.Conditions {
		wanted := corev1.ConditionTrue
		if condition.Type == corev1.PodReady {
			wanted = corev1.ConditionFalse
			if !condition.LastTransitionTime.Time.Equal(later) {
				t.Errorf("Ready changed at %s; want %s", condition.LastTransitionTime, later)
			}
		}
		if condition.Status != wanted {
			t.Errorf("%s = %s; want %s", condition.Type, condition.Status, wanted)
		}
	}
	if !apiequality.Semantic.DeepEqual(before.ContainerStatuses, pod.Status.ContainerStatuses) {
		t.Error("container statuses changed although nobody can know them")
	}
	settle(t, pod, later)
	if ready := pod.Status.Conditions; stateOf(pod.Status.ContainerStatuses[0]) != "running ready restarts=0" {
		t.Errorf("back again: %s, %v", stateOf(pod.Status.ContainerStatuses[0]), ready)
	}
}

func TestBackoffIsTheKubelets(t *testing.T) {
	var got []string
	for pauses := range 8 {
		got = append(got, backoffAfter(pauses, defaultMaxBackoff).String())
	}
	want := "10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s"
	if strings.Join(got, " ") != want {
		t.Errorf("pauses are %s; want %s", strings.Join(got, " "), want)
	}
	if pause := backoffAfter(3, time.Second); pause != time.Second {
		t.Errorf("pause = %s; want no more than the limit of 1s", pause)
	}
}

func TestImageID(t *testing.T) {
	for image, want := range map[string]string{
		"app":                   "app@sha256:",
		"app:1":                 "app@sha256:",
		"registry:5000/app":     "registry:5000/app@sha256:",
		"registry:5000/app:1":   "registry:5000/app@sha256:",
		"app@sha256:0123456789": "app@sha256:0123456789",
	} {
		if got := imageID(image); !strings.HasPrefix(got, want) {
			t.Errorf("imageID(%q) = %q; want it to begin with %q", image, got, want)
		}
	}
	if imageID("app:1") == imageID("app:2") {
		t.Error("two images have one ID")
	}
}
