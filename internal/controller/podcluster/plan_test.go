// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"testing"
	"time"
)

func TestPlan(t *testing.T) {
	rolling := settings{name: "web", replicas: 3, maxUnavailable: 1, inPlace: true, minReady: time.Minute, deadline: 10 * time.Minute}
	with := func(change func(*settings)) settings {
		changed := rolling
		change(&changed)
		return changed
	}
	two := with(func(s *settings) { s.maxUnavailable = 2 })
	partitioned := with(func(s *settings) { s.partition = 2 })
	onDelete := with(func(s *settings) { s.onDelete = true })
	none := with(func(s *settings) { s.replicas = 0 })

	for _, test := range []struct {
		name            string
		settings        settings
		pods            string
		current, update string
		want            string
		wake            time.Duration
	}{
		{name: "nothing to do", settings: rolling, pods: "v1/v1/v1", current: "v1", update: "v1"},
		{name: "all are missing", settings: rolling, pods: "", current: "v1", update: "v1", want: "create 0 to v1, create 1 to v1, create 2 to v1"},
		{name: "one is missing", settings: rolling, pods: "v1/./v1", current: "v1", update: "v1", want: "create 1 to v1"},
		{name: "too many, from the highest down", settings: rolling, pods: "v1/v1/v1/v1/v1", current: "v1", update: "v1", want: "delete 4 (scaled down), delete 3 (scaled down)"},
		{name: "too many, one on its way", settings: rolling, pods: "v1/v1/v1/v1/v1-", current: "v1", update: "v1", want: "delete 3 (scaled down)", wake: 35 * time.Second},
		{name: "down to none", settings: none, pods: "v1/v1~", current: "v1", update: "v1", want: "delete 1 (scaled down), delete 0 (scaled down)"},
		{name: "the name of a pod that goes is not free", settings: rolling, pods: "v1/v1-/v1", current: "v1", update: "v1", wake: 35 * time.Second},
		{name: "nor that of one that does not go", settings: rolling, pods: "v1/v1=/v1", current: "v1", update: "v1"},

		{name: "an evicted pod", settings: rolling, pods: "v1/v1x/v1", current: "v1", update: "v1", want: "delete 1 (it has ended: Evicted)"},
		{name: "a pod that ends as soon as it is made", settings: rolling, pods: "v1/v1X/v1", current: "v1", update: "v1", wake: 9 * time.Second},
		{name: "a pod that is late", settings: rolling, pods: "v1/v1~/v1", current: "v1", update: "v1", wake: 10*time.Minute - 10*time.Second},
		{name: "a pod that is too late", settings: rolling, pods: "v1/v1!/v1", current: "v1", update: "v1", want: "delete 1 (it has not been ready for 10m0s)"},
		{name: "a pod that will count soon", settings: rolling, pods: "v1/v1+/v1", current: "v1", update: "v1", wake: 30 * time.Second},
		{name: "all broken pods at once", settings: rolling, pods: "v1x/v1!/v1x", current: "v1", update: "v1", want: "delete 0 (it has ended: Evicted), delete 1 (it has not been ready for 10m0s), delete 2 (it has ended: Evicted)"},

		{name: "an image, one at a time", settings: rolling, pods: "v1/v1/v1", current: "v1", update: "v2", want: "update in place 2 to v2"},
		{name: "an image, two at a time", settings: two, pods: "v1/v1/v1", current: "v1", update: "v2", want: "update in place 2 to v2, update in place 1 to v2"},
		{name: "more than an image", settings: rolling, pods: "v1/v1/v1", current: "v1", update: "v2b", want: "delete 2 (another revision)"},
		{name: "an image, but never in place", settings: with(func(s *settings) { s.inPlace = false }), pods: "v1/v1/v1", current: "v1", update: "v2", want: "delete 2 (another revision)"},
		{name: "an unknown revision", settings: rolling, pods: "v2/v2/gone", current: "v2", update: "v2", want: "delete 2 (another revision)"},
		{name: "wait for the kubelet", settings: rolling, pods: "v1/v1/v2^", current: "v1", update: "v2", wake: 10*time.Minute - 5*time.Second},
		{name: "wait for readiness", settings: rolling, pods: "v1/v1/v2~", current: "v1", update: "v2", wake: 10*time.Minute - 10*time.Second},
		{name: "wait for minReadySeconds", settings: rolling, pods: "v1/v1/v2+", current: "v1", update: "v2", wake: 30 * time.Second},
		{name: "wait for the deletion", settings: rolling, pods: "v1/v1/v1-", current: "v1", update: "v2b", wake: 35 * time.Second},
		{name: "go on with the next", settings: rolling, pods: "v1/v1/v2", current: "v1", update: "v2", want: "update in place 1 to v2"},
		{name: "another change meanwhile", settings: rolling, pods: "v1/v1/v2", current: "v1", update: "v3", want: "update in place 2 to v3"},
		{name: "any pod that is missing counts", settings: rolling, pods: "./v1/v1", current: "v1", update: "v2", want: "create 0 to v2"},
		{name: "and leaves room if two may be", settings: two, pods: "./v1/v1", current: "v1", update: "v2", want: "create 0 to v2, update in place 2 to v2"},

		{name: "a broken pod of an old revision does not wait", settings: rolling, pods: "v1/v1/v2~", current: "v1", update: "v3b", want: "delete 2 (another revision)", wake: 10*time.Minute - 10*time.Second},
		{name: "nor if all are broken", settings: rolling, pods: "v2~/v2~/v2~", current: "v2", update: "v3", want: "update in place 2 to v3, update in place 1 to v3, update in place 0 to v3", wake: 10*time.Minute - 10*time.Second},
		{name: "a ready pod that does not count yet does wait", settings: rolling, pods: "v1+/v1+/v1+", current: "v1", update: "v2", wake: 30 * time.Second},

		{name: "a partition", settings: partitioned, pods: "v1/v1/v1", current: "v1", update: "v2", want: "update in place 2 to v2"},
		{name: "a partition that is updated", settings: partitioned, pods: "v1/v1/v2", current: "v1", update: "v2"},
		{name: "below a partition the current revision is made", settings: partitioned, pods: "v1/./v2", current: "v1", update: "v2", want: "create 1 to v1"},
		{name: "above a partition the new one", settings: partitioned, pods: "v1/v1/.", current: "v1", update: "v2", want: "create 2 to v2"},
		{name: "below a partition broken pods are not updated", settings: partitioned, pods: "v1/v1~/v2", current: "v1", update: "v2", wake: 10*time.Minute - 10*time.Second},

		{name: "OnDelete leaves pods alone", settings: onDelete, pods: "v1/v1~/v1", current: "v1", update: "v2", wake: 10*time.Minute - 10*time.Second},
		{name: "OnDelete makes the new revision", settings: onDelete, pods: "v1/./v1", current: "v1", update: "v2", want: "create 1 to v2"},
		{name: "OnDelete replaces what has ended", settings: onDelete, pods: "v1/v1x/v1", current: "v1", update: "v2", want: "delete 1 (it has ended: Evicted)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := parseWorld(t, test.settings, test.pods)
			w.current, w.update = newRevision(test.current), newRevision(test.update)
			got := newPlan(w)
			if text := describePlan(got); text != test.want {
				t.Errorf("the plan is\n  %s, not\n  %s", text, test.want)
			}
			wake := time.Duration(0)
			if !got.wake.IsZero() {
				wake = got.wake.Sub(noon)
			}
			if wake != test.wake {
				t.Errorf("the next look is after %v, not %v", wake, test.wake)
			}
		})
	}
}
