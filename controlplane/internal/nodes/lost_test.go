// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// runningPod has been running since the epoch.
func runningPod(t *testing.T, annotation string) *corev1.Pod {
	t.Helper()
	pod := boundPod(annotation, "")
	settle(t, pod, epoch)
	return pod
}

func TestWantLost(t *testing.T) {
	pending := boundPod("node-lost", "")
	finished := runningPod(t, "node-lost")
	finished.Status.Phase = corev1.PodFailed
	annotatedNode := nodeWith()
	annotatedNode.Annotations = map[string]string{Annotation: "node-lost"}
	wronglyAnnotatedNode := nodeWith()
	wronglyAnnotatedNode.Annotations = map[string]string{Annotation: "crash-loop"}

	for name, test := range map[string]struct {
		node *corev1.Node
		pods []*corev1.Pod
		at   time.Duration
		want string // reason, "" if the node is not lost
		wake time.Duration
	}{
		"no pods":                          {},
		"a pod without annotation":         {pods: []*corev1.Pod{runningPod(t, "")}},
		"a pod with another behaviour":     {pods: []*corev1.Pod{runningPod(t, "never-ready")}},
		"a pod that does not run yet":      {pods: []*corev1.Pod{pending}},
		"a pod that is finished":           {pods: []*corev1.Pod{finished}},
		"a pod among others":               {pods: []*corev1.Pod{runningPod(t, ""), runningPod(t, "node-lost")}, want: "PodBehaviour"},
		"a pod later, before":              {pods: []*corev1.Pod{runningPod(t, "node-lost,after=10s")}, at: 9 * time.Second, wake: 10300 * time.Millisecond},
		"a pod later, after":               {pods: []*corev1.Pod{runningPod(t, "node-lost,after=10s")}, at: 11 * time.Second, want: "PodBehaviour"},
		"a pod for a while, during":        {pods: []*corev1.Pod{runningPod(t, "node-lost,for=5s")}, at: time.Second, want: "PodBehaviour", wake: 5300 * time.Millisecond},
		"a pod for a while, after":         {pods: []*corev1.Pod{runningPod(t, "node-lost,for=5s")}, at: 6 * time.Second},
		"two pods, the earlier end counts": {pods: []*corev1.Pod{runningPod(t, "node-lost,for=50s"), runningPod(t, "node-lost,for=5s")}, want: "PodBehaviour", wake: 5300 * time.Millisecond},
		"the node itself":                  {node: annotatedNode, want: "NodeBehaviour"},
		"the node with a pod's behaviour":  {node: wronglyAnnotatedNode},
	} {
		t.Run(name, func(t *testing.T) {
			if test.node == nil {
				test.node = nodeWith()
			}
			got, wake := wantLost(test.node, test.pods, epoch.Add(test.at))
			reason := ""
			if got != nil {
				reason = got.Reason
			}
			if reason != test.want {
				t.Errorf("lost = %q; want %q", reason, test.want)
			}
			if test.wake == 0 && !wake.IsZero() || test.wake != 0 && !wake.Equal(epoch.Add(test.wake)) {
				t.Errorf("look again at %v; want after %s", wake, test.wake)
			}
		})
	}
}

func TestLostConditionNamesThePod(t *testing.T) {
	got, _ := wantLost(nodeWith(), []*corev1.Pod{runningPod(t, "node-lost")}, epoch)
	if !strings.Contains(got.Message, "default/web") || !strings.Contains(got.Message, Annotation) {
		t.Errorf("message %q does not tell why", got.Message)
	}
}

func TestLostPatch(t *testing.T) {
	want, _ := wantLost(nodeWith(), []*corev1.Pod{runningPod(t, "node-lost")}, epoch)
	lost := nodeWith(condition(corev1.NodeReady, corev1.ConditionUnknown), *want)
	for name, test := range map[string]struct {
		node *corev1.Node
		want *corev1.NodeCondition
		lost bool
		none bool
	}{
		"becomes lost":    {node: nodeWith(), want: want, lost: true},
		"is lost":         {node: lost, want: want, lost: true, none: true},
		"comes back":      {node: lost},
		"never was":       {node: nodeWith(), none: true},
		"another culprit": {node: nodeWith(condition(Lost, corev1.ConditionTrue)), want: want, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			patch := lostPatch(test.node, test.want)
			if (patch == nil) != test.none {
				t.Fatalf("patch = %v; want none: %t", patch, test.none)
			}
			if patch == nil {
				return
			}
			before, _ := json.Marshal(test.node)
			data, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			patched, err := strategicpatch.StrategicMergePatch(before, data, test.node)
			if err != nil {
				t.Fatal(err)
			}
			var after corev1.Node
			if err := json.Unmarshal(patched, &after); err != nil {
				t.Fatal(err)
			}
			if isLost(&after) != test.lost {
				t.Errorf("lost = %t; want %t", isLost(&after), test.lost)
			}
			if left := nodeCondition(&after.Status, Lost); !test.lost && left != nil {
				t.Errorf("condition %+v is left", left)
			}
		})
	}
}
