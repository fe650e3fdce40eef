// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	"github.com/opdock/opdock/internal/flow"
)

// aPod is ready and has the given addresses.
func aPod(name string, ips ...string) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, ip := range ips {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	return pod
}

func with(pod corev1.Pod, change func(*corev1.Pod)) corev1.Pod {
	change(&pod)
	return pod
}

func unready(pod *corev1.Pod)     { pod.Status.Conditions = nil }
func terminating(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func succeeded(pod *corev1.Pod)   { pod.Status.Phase = corev1.PodSucceeded }
func failed(pod *corev1.Pod)      { pod.Status.Phase = corev1.PodFailed }

func TestAddresses(t *testing.T) {
	both := []corev1.Pod{aPod("a", "10.0.0.2", "fd00::2"), with(aPod("b", "10.0.0.1", "fd00::1"), unready)}
	for name, test := range map[string]struct {
		pods []corev1.Pod
		spec collectorv1.CollectorSpec
		want string
	}{
		"none":                  {nil, collectorv1.CollectorSpec{}, ""},
		"without an address":    {[]corev1.Pod{aPod("a")}, collectorv1.CollectorSpec{}, ""},
		"not an address":        {[]corev1.Pod{aPod("a", "nonsense")}, collectorv1.CollectorSpec{}, ""},
		"both families, sorted": {both, collectorv1.CollectorSpec{}, "10.0.0.1/b/false 10.0.0.2/a/true fd00::1/b/false fd00::2/a/true"},
		"one family":            {both, collectorv1.CollectorSpec{IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}}, "fd00::1/b/false fd00::2/a/true"},
		"ready ones": {both, collectorv1.CollectorSpec{Readiness: collectorv1.ReadinessReady, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}},
			"10.0.0.2/a/true"},
		"sorted as numbers": {[]corev1.Pod{aPod("a", "10.0.0.10"), aPod("b", "10.0.0.9"), aPod("c", "9.0.0.0")}, collectorv1.CollectorSpec{},
			"9.0.0.0/c/true 10.0.0.9/b/true 10.0.0.10/a/true"},
		"a pod in two caches": {[]corev1.Pod{aPod("a", "10.0.0.1"), aPod("b", "10.0.0.2"), aPod("a", "10.0.0.1")}, collectorv1.CollectorSpec{},
			"10.0.0.1/a/true 10.0.0.2/b/true"},
		"an address of two pods": {[]corev1.Pod{aPod("b", "10.0.0.1"), aPod("a", "10.0.0.1")}, collectorv1.CollectorSpec{},
			"10.0.0.1/a/true 10.0.0.1/b/true"},
		"those that have ended": {[]corev1.Pod{with(aPod("a", "10.0.0.1"), succeeded), with(aPod("b", "10.0.0.2"), failed)}, collectorv1.CollectorSpec{}, ""},
		"one that goes":         {[]corev1.Pod{with(aPod("a", "10.0.0.1"), terminating)}, collectorv1.CollectorSpec{}, "10.0.0.1/a/false"},
		"one that goes, ready ones": {[]corev1.Pod{with(aPod("a", "10.0.0.1"), terminating)},
			collectorv1.CollectorSpec{Readiness: collectorv1.ReadinessReady}, ""},
	} {
		var got []string
		for _, address := range addresses(test.pods, test.spec) {
			got = append(got, fmt.Sprintf("%s/%s/%t", address.IP, address.Pod, address.Ready))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	owned := func(kind, name, hash string) corev1.Pod {
		return with(aPod("a", "10.0.0.1"), func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "x"}, {Kind: kind, Name: name, Controller: ptr.To(true)}}
			if hash != "" {
				pod.Labels["pod-template-hash"] = hash
			}
		})
	}
	for want, pod := range map[string]corev1.Pod{
		"":                       aPod("a", "10.0.0.1"),
		"DaemonSet logs":         owned("DaemonSet", "logs", ""),
		"ReplicaSet bare":        owned("ReplicaSet", "bare", ""),
		"ReplicaSet other-abc":   owned("ReplicaSet", "other-abc", "def"),
		"Deployment web-server":  owned("ReplicaSet", "web-server-6d4b", "6d4b"),
		"StatefulSet s-6d4b":     owned("StatefulSet", "s-6d4b", "6d4b"),
		"PodCluster demo":        owned("PodCluster", "demo", ""),
		"ReplicaSet -6d4b":       owned("ReplicaSet", "-6d4b", "6d4b"),
		"Deployment a-6d4b-6d4b": owned("ReplicaSet", "a-6d4b-6d4b-6d4b", "6d4b"),
	} {
		stripped, err := strip(pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if owner := ownerOf(stripped.(*corev1.Pod)); owner != nil {
			got = owner.Kind + " " + owner.Name
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, pod := range []corev1.Pod{owned(strings.Repeat("K", 64), "a", ""), owned("Kind", strings.Repeat("a", 254), "")} {
		if owner := ownerOf(&pod); owner != nil {
			t.Errorf("the status cannot have the owner %+v", owner)
		}
	}
}

func TestStripKeepsWhatIsRead(t *testing.T) {
	whole := with(aPod("a", "10.0.0.1", "fd00::1"), terminating)
	whole.Annotations = map[string]string{"long": strings.Repeat("x", 1000)}
	whole.Spec.Containers = []corev1.Container{{Name: "c"}}
	whole.Status.Conditions = append(whole.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Message: "long"})
	got, err := strip(whole.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	pod := got.(*corev1.Pod)
	if pod.Annotations != nil || pod.Spec.Containers != nil || len(pod.Status.Conditions) != 1 {
		t.Errorf("too much is left: %+v", pod)
	}
	if !sameAddresses(pod, &whole) || len(addressesOf(pod)) != 2 {
		t.Errorf("too little is left: %+v", pod)
	}
	again, err := strip(pod.DeepCopy())
	if err != nil || !slices.Equal(again.(*corev1.Pod).Status.PodIPs, pod.Status.PodIPs) {
		t.Errorf("what was stripped cannot be stripped again: %+v, %v", again, err)
	}
}

// Records name the writers of a pod, but do not need their fields.
func TestStripButWriters(t *testing.T) {
	whole := aPod("a", "10.0.0.1")
	whole.Spec.Containers = []corev1.Container{{Name: "c"}}
	whole.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Subresource: "status", FieldsV1: metav1.NewFieldsV1("{}")}}
	got, err := stripButWriters(whole.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	pod := got.(*corev1.Pod)
	if len(pod.ManagedFields) != 1 || pod.ManagedFields[0].Manager != "kubelet" || pod.ManagedFields[0].Subresource != "status" {
		t.Errorf("the writers are %+v", pod.ManagedFields)
	}
	if pod.ManagedFields[0].FieldsV1 != nil || pod.Spec.Containers != nil {
		t.Errorf("too much is left: %+v", pod)
	}
}

func TestOutput(t *testing.T) {
	list := addresses([]corev1.Pod{aPod("a", "10.0.0.1"), aPod("b", "10.0.0.1"), aPod("c", "10.0.0.2")}, collectorv1.CollectorSpec{})
	data, err := output(list, 1000)
	if err != nil || data[KeyIPs] != "10.0.0.1\n10.0.0.2\n" || strings.Count(data[KeyAddresses], `"pod":`) != 3 {
		t.Errorf("got %q, %v", data, err)
	}
	if data, err := output(nil, 1000); err != nil || data[KeyIPs] != "" || data[KeyAddresses] != "[]" {
		t.Errorf("without addresses: got %q, %v", data, err)
	}
	// Less and less room: first the details go, then all of it.
	if data, err := output(list, 100); err != nil || data[KeyIPs] != "10.0.0.1\n10.0.0.2\n" || len(data) != 1 {
		t.Errorf("without room for details: got %q, %v", data, err)
	}
	if data, err := output(list, 17); flow.Reason(err) != ReasonOutputTooLarge || data != nil {
		t.Errorf("without room: got %q, %v", data, err)
	}
}

func TestTheStatusIsBounded(t *testing.T) {
	var pods []corev1.Pod
	for i := range collectorv1.MaxAddresses + 10 {
		pods = append(pods, aPod(fmt.Sprintf("pod-%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250)))
	}
	unready(&pods[0])
	var status collectorv1.CollectorStatus
	list := addresses(pods, collectorv1.CollectorSpec{})
	if !setAddresses(&status, list) {
		t.Error("nothing has changed")
	}
	if len(status.Addresses) != collectorv1.MaxAddresses || !status.Truncated || int(status.AddressCount) != len(pods) || int(status.ReadyAddressCount) != len(pods)-1 {
		t.Errorf("got %d addresses, truncated %t, of %d, ready %d", len(status.Addresses), status.Truncated, status.AddressCount, status.ReadyAddressCount)
	}
	if setAddresses(&status, list) {
		t.Error("the same addresses count as a change")
	}
	if !setAddresses(&status, list[:3]) || status.Truncated || len(status.Addresses) != 3 {
		t.Errorf("of fewer, there are %d", len(status.Addresses))
	}
}
