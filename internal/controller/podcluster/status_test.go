// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
)

func TestVerdict(t *testing.T) {
	rolling := settings{name: "web", replicas: 3, minReady: time.Minute}
	partitioned, onDelete := rolling, rolling
	partitioned.partition, onDelete.onDelete = 2, true
	for _, test := range []struct {
		name            string
		settings        settings
		pods            string
		current, update string
		reason, message string
	}{
		{"all is well", rolling, "v1/v1/v1", "v1", "v1", "", ""},
		{"one is missing", rolling, "v1/./v1", "v1", "v1", "PodsNotAvailable", "2 of 3 pods are available"},
		{"one does not count yet", rolling, "v1/v1+/v1", "v1", "v1", "PodsNotAvailable", "2 of 3 pods are available"},
		{"one is too many", rolling, "v1/v1/v1/v1-", "v1", "v1", "ScalingDown", "1 surplus pod is terminating"},
		{"an update goes on", rolling, "v1/v1/v2", "v1", "v2", "RollingOut", "1 of 3 pods are updated, 3 are available"},
		{"the last pod of an update", rolling, "v2~/v2/v2", "v1", "v2", "RollingOut", "3 of 3 pods are updated, 2 are available"},
		{"a partition is updated", partitioned, "v1/v1/v2", "v1", "v2", "", ""},
		{"a partition is not updated", partitioned, "v1/v1/v1", "v1", "v2", "RollingOut", "0 of 3 pods are updated, 3 are available"},
		{"OnDelete is not content with an unknown one", onDelete, "v1/gone/v1", "v1", "v1", ReasonUnknownRevision, "pod web-1 follows no known revision"},
		{"nor is a partition", partitioned, "gone/v1/v2", "v1", "v2", ReasonUnknownRevision, "pod web-0 follows no known revision"},
		{"OnDelete is content with the old", onDelete, "v1/v1/v1", "v1", "v2", "", ""},
		{"one has failed", rolling, "v1/v1X/v1", "v1", "v1", "Failed", "pod web-1: Failed"},
		{"one does not go", rolling, "v1/v1=/v1", "v1", "v1", ReasonPodNotTerminating, "pod web-1 has been overdue for deletion since 2026-01-01T11:00:00Z: node node-1 does not confirm"},
		{"one too many does not go", rolling, "v1/v1/v1/v1=", "v1", "v1", ReasonPodNotTerminating, "pod web-3 has been overdue"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := parseWorld(t, test.settings, test.pods)
			w.current, w.update = newRevision(test.current), newRevision(test.update)
			if test.current == test.update {
				w.current = w.update
			}
			err := verdict(&w)
			if reason := flow.Reason(err); reason != test.reason || (err == nil) != (test.reason == "") {
				t.Fatalf("the verdict is %q (%v), not %q", reason, err, test.reason)
			}
			if err != nil && !strings.HasPrefix(err.Error(), test.message) {
				t.Errorf("it says %q, not %q", err, test.message)
			}
		})
	}
}

// A pod that differs from its template may have to wait before it is replaced.
func TestVerdictNamesDrift(t *testing.T) {
	w := parseWorld(t, settings{name: "web", replicas: 2}, "v1/v1")
	w.current, w.update = w.revisions["v1"], w.revisions["v1"]
	w.members[1].drift = &podDrift{lasting: []string{"tolerations"}, spec: []string{"spec.tolerations was changed by rival"}}
	if err := verdict(&w); !flow.IsWaiting(err) || !strings.Contains(err.Error(), "pod web-1 differs from its template, and will be corrected: spec.tolerations was changed by rival") {
		t.Errorf("the verdict is %v", err)
	}
}

// Ready pods that the strategy does not update are named, so they are not taken for updated ones.
func TestOldPodsAreNamed(t *testing.T) {
	rolling := settings{name: "web", replicas: 3}
	partitioned, onDelete, many := rolling, rolling, rolling
	partitioned.partition, onDelete.onDelete, many.onDelete = 2, true, true
	many.replicas = 7
	for _, test := range []struct {
		settings   settings
		pods, want string
	}{
		{rolling, "v2/v2/v2", ""},
		{onDelete, "v2/v2/v2", ""},
		{onDelete, "v1/v2/v1", "2 of 3 pods run an older template, updateStrategy OnDelete keeps them until they are deleted: web-0, web-2"},
		{partitioned, "v1/v1/v2", "2 of 3 pods run an older template, updateStrategy.partition 2 keeps them: web-0, web-1"},
		{
			many, "v1/v1/v1/v1/v1/v1/v1",
			"7 of 7 pods run an older template, updateStrategy OnDelete keeps them until they are deleted: web-0, web-1, web-2, web-3, web-4, …",
		},
	} {
		w := parseWorld(t, test.settings, test.pods)
		w.current, w.update = newRevision("v1"), newRevision("v2")
		if err := verdict(&w); err != nil {
			t.Errorf("%s: the verdict is %v", test.pods, err)
		}
		if got := left(&w); got != test.want {
			t.Errorf("%s: %q, not %q", test.pods, got, test.want)
		}
	}
}

func TestVerdictNamesFinalizers(t *testing.T) {
	w := parseWorld(t, settings{name: "web", replicas: 1}, "v1=")
	w.current, w.update = newRevision("v1"), newRevision("v1")
	w.members[0].pod.Finalizers = []string{"example.com/slow"}
	if err := verdict(&w); err == nil || !strings.Contains(err.Error(), "example.com/slow") {
		t.Errorf("the verdict is %v", err)
	}
}

func TestVerdictNamesTroubles(t *testing.T) {
	w := parseWorld(t, settings{name: "web", replicas: 2}, "v1/v1~")
	w.current, w.update = newRevision("v1"), newRevision("v1")
	w.members[1].pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}
	err := verdict(&w)
	if !flow.IsStalled(err) || flow.Reason(err) != "ImagePullBackOff" {
		t.Errorf("the verdict is %v", err)
	}
}

func TestCounters(t *testing.T) {
	for _, test := range []struct {
		pods            string
		current, update string
		want            string
	}{
		{"v1/v1/v1", "v1", "v1", "3 pods, 3 ready, 3 available, 3 current, 3 updated"},
		{"v1/v1+/v2/v2~", "v1", "v2", "4 pods, 3 ready, 2 available, 2 current, 2 updated"},
		{"v1/v1^/v2-/.", "v1", "v2", "3 pods, 1 ready, 1 available, 2 current, 0 updated"},
		{"", "v1", "v2", "0 pods, 0 ready, 0 available, 0 current, 0 updated"},
	} {
		s := &scope{cluster: &kubegroupv1.PodCluster{}, world: parseWorld(t, settings{name: "web", replicas: 4, minReady: time.Minute}, test.pods)}
		s.world.current, s.world.update = newRevision(test.current), newRevision(test.update)
		setStatus(s)
		status := s.cluster.Status
		got := fmt.Sprintf("%d pods, %d ready, %d available, %d current, %d updated", status.Replicas, status.ReadyReplicas,
			status.AvailableReplicas, status.CurrentReplicas, status.UpdatedReplicas)
		if got != test.want {
			t.Errorf("%s: %s, not %s", test.pods, got, test.want)
		}
		if status.CurrentRevision != "web-"+test.current || status.UpdateRevision != "web-"+test.update {
			t.Errorf("%s: the revisions are %s and %s", test.pods, status.CurrentRevision, status.UpdateRevision)
		}
	}
}
