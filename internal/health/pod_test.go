// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestTrouble(t *testing.T) {
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "why"}}},
		}}
	}
	for _, test := range []struct {
		name       string
		status     corev1.PodStatus
		want, kind string
	}{
		{"well", corev1.PodStatus{Phase: corev1.PodRunning}, "", ""},
		{"on its way", waiting("ContainerCreating"), "", ""},
		{"image", waiting("ErrImagePull"), "pod p: ErrImagePull: why", "ImagePullBackOff"},
		{"still no image", waiting("ImagePullBackOff"), "pod p: ImagePullBackOff: why", "ImagePullBackOff"},
		{"crash", waiting("CrashLoopBackOff"), "pod p: CrashLoopBackOff: why", "CrashLoopBackOff"},
		{"evicted", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "no room"}, "pod p: Evicted: no room", "Evicted"},
		{"failed", corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}},
		}}, "pod p: Failed: container c ended with exit code 3", "Failed"},
		{"in an init container", corev1.PodStatus{InitContainerStatuses: waiting("CrashLoopBackOff").ContainerStatuses}, "pod p: CrashLoopBackOff: why", "CrashLoopBackOff"},
		{"nowhere to go", corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no nodes"},
		}}, "pod p: Unschedulable: no nodes", "Unschedulable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, status := range []corev1.PodStatus{test.status, Relevant(test.status)} {
				trouble := TroubleOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: status})
				if trouble == nil {
					if test.want != "" {
						t.Errorf("none was found, want %s", test.want)
					}
					continue
				}
				if trouble.Error() != test.want || trouble.Kind() != test.kind {
					t.Errorf("got %v, %s", trouble, trouble.Kind())
				}
			}
		})
	}
}

func TestTheFirstTroubleOfTheNewestPods(t *testing.T) {
	pod := func(name, revision string, age time.Duration, broken bool) corev1.Pod {
		result := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"revision": revision}, CreationTimestamp: metav1.NewTime(time.Unix(1000, 0).Add(-age)),
		}}
		if broken {
			result.Status = corev1.PodStatus{Phase: corev1.PodFailed}
		}
		return result
	}
	all := []corev1.Pod{
		pod("d", "new", time.Minute, true), pod("a", "old", time.Hour, true), pod("c", "new", time.Second, true), pod("b", "new", time.Minute, false),
	}
	newest := Newest(all, "revision")
	if len(newest) != 3 {
		t.Errorf("%d of them are new", len(newest))
	}
	if trouble := FirstTrouble(newest); trouble == nil || trouble.Pod != "c" {
		t.Errorf("got %v", trouble)
	}
	if FirstTrouble(Newest(nil, "revision")) != nil {
		t.Error("trouble out of nothing")
	}
}

func TestReadyExcludesTerminatingPods(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	if !IsReady(pod) {
		t.Error("it is ready")
	}
	pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	if IsReady(pod) {
		t.Error("it is leaving")
	}
}

func TestRelevantStatus(t *testing.T) {
	status := Relevant(corev1.PodStatus{
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		},
		ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		QOSClass:          corev1.PodQOSBurstable,
	})
	if !IsReady(&corev1.Pod{Status: status}) {
		t.Error("the pod is not ready any more")
	}
	if len(status.Conditions) != 1 || len(status.ContainerStatuses) != 0 || status.QOSClass != "" {
		t.Errorf("kept more than what is read: %+v", status)
	}
}

// TestEvictedPodsOfADeployment ignores evicted pods that were replaced, and reports those that were not.
func TestEvictedPodsOfADeployment(t *testing.T) {
	pod := func(name string, minute int64, status corev1.PodStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "n", Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(time.Unix(60*minute, 0)),
		}, Status: status}
	}
	rejected := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
	waiting := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	deployment.Status.UnavailableReplicas = 1
	for name, test := range map[string]struct {
		pods []client.Object
		want string
	}{
		"a new one starts":                   {[]client.Object{pod("a", 1, rejected), pod("b", 2, corev1.PodStatus{Phase: corev1.PodPending})}, ""},
		"a new one is in trouble":            {[]client.Object{pod("a", 1, rejected), pod("b", 2, waiting)}, "CrashLoopBackOff"},
		"there is no other":                  {[]client.Object{pod("a", 1, rejected)}, "Evicted"},
		"the new ones end beside an old one": {[]client.Object{pod("a", 1, corev1.PodStatus{Phase: corev1.PodRunning}), pod("b", 2, rejected), pod("c", 3, rejected)}, "Evicted"},
	} {
		trouble, err := TroubleOfDeployment(t.Context(), fake.NewClientBuilder().WithObjects(test.pods...).Build(), deployment)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if trouble != nil {
			got = trouble.Reason
		}
		if got != test.want {
			t.Errorf("%s: the trouble is %q, not %q", name, got, test.want)
		}
	}
}
