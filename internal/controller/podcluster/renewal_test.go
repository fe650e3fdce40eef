// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAnImageThatIsTakenBackAtOnce has the image of a running container changed and restored. Whether the kubelet has seen the
// change in between decides whether there is a restart to wait for.
func TestAnImageThatIsTakenBackAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		reported string
		waits    bool
	}{
		"the kubelet has not seen it":                     {"nginx", false},
		"the kubelet has not seen it, and has long names": {"docker.io/library/nginx:latest", false},
		"the kubelet has acted":                           {"other", true},
		"the container does not run yet":                  {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "ring-1", Labels: map[string]string{}, ManagedFields: ownFieldsOf(ownsRenewal)},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "other"}}},
			}
			if test.reported != "" {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: test.reported, ContainerID: "sim://1"}}
			}
			after, err := renewed(pod, map[string]string{"main": "nginx"}, &revision{hash: "a"}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if _, waits := renewalOf(after); waits != test.waits || after.Spec.Containers[0].Image != "nginx" {
				t.Errorf("it waits: %v, for %+v", waits, after)
			}
		})
	}
}

// A pod that lacks a container would follow the revision by its label alone.
func TestAPodWithoutTheContainerIsNotUpdatedInPlace(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "ring-1", Labels: map[string]string{}}}
	if after, err := renewed(pod, map[string]string{"main": "nginx"}, &revision{hash: "a"}, time.Now()); err == nil {
		t.Errorf("it became %+v", after)
	}
	w := parseWorld(t, settings{name: "web", replicas: 1, maxUnavailable: 1, inPlace: true, deadline: time.Minute}, "v1")
	w.members[0].pod.Spec.Containers = nil
	w.current, w.update = newRevision("v1"), newRevision("v2")
	if got := describePlan(newPlan(w)); got != "delete 0 (another revision)" {
		t.Errorf("the plan is %s", got)
	}
}
