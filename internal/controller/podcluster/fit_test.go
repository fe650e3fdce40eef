// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// admitted returns the pod of a revision as the server stores it, without the label of its revision.
func admitted(t *testing.T, hash string, edit func(*corev1.Pod)) *member {
	t.Helper()
	pod, err := podOf(clusterOf(t, "{}"), newRevision(hash), 0)
	if err != nil {
		t.Fatal(err)
	}
	delete(pod.Labels, labelRevision)
	pod.Spec.NodeName, pod.Spec.RestartPolicy, pod.Spec.DNSPolicy = "node-1", corev1.RestartPolicyAlways, corev1.DNSClusterFirst
	pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "default", "default"
	pod.Spec.SchedulerName, pod.Spec.SecurityContext = corev1.DefaultSchedulerName, &corev1.PodSecurityContext{}
	pod.Spec.TerminationGracePeriodSeconds, pod.Spec.EnableServiceLinks, pod.Spec.Priority = new(int64(30)), new(true), new(int32(0))
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
		})
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: tokenVolume + "abcde"})
	main := &pod.Spec.Containers[0]
	main.ImagePullPolicy = corev1.PullIfNotPresent
	main.TerminationMessagePath, main.TerminationMessagePolicy = corev1.TerminationMessagePathDefault, corev1.TerminationMessageReadFile
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: tokenVolume + "abcde", MountPath: "/token"})
	edit(pod)
	return memberOf("web", pod)
}

func TestWhichRevisionAPodFits(t *testing.T) {
	for _, test := range []struct {
		name, from, want string
		edit             func(*corev1.Pod)
	}{
		{"as it was made", "v1", "v1", func(*corev1.Pod) {}},
		{"another image", "v2", "v2", func(*corev1.Pod) {}},
		{"with more annotations", "v2b", "v2b", func(*corev1.Pod) {}},
		{"a revision that is gone", "v3", "", func(*corev1.Pod) {}},
		{"a label of another writer", "v1", "v1", func(p *corev1.Pod) { p.Labels["note"] = "theirs" }},
		{"a changed image", "v1", "", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil" }},
		{"the image of another revision", "v1", "v2", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "image:2" }},
		{"a variable", "v1", "", func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}} }},
		{"the network of the host", "v1", "", func(p *corev1.Pod) { p.Spec.HostNetwork = true }},
		{"another default", "v1", "", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }},
		{"a toleration", "v1", "", func(p *corev1.Pod) { p.Spec.Tolerations[0].TolerationSeconds = new(int64(1)) }},
		{"a container more", "v1", "", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "injected"}) }},
		{"a security context", "v1", "", func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = new(int64(0)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			known := map[string]*revision{"v1": newRevision("v1"), "v2": newRevision("v2"), "v2b": newRevision("v2b")}
			got := ""
			if found := fitting(clusterOf(t, "{}"), known, admitted(t, test.from, test.edit)); found != nil {
				got = found.hash
			}
			if got != test.want {
				t.Errorf("it fits %q, not %q", got, test.want)
			}
		})
	}
}

// A rollback may leave two revisions with the same template.
func TestTheNewestOfEqualRevisionsFits(t *testing.T) {
	older, newer := newRevision("v1"), newRevision("v1")
	older.hash, older.object, newer.hash, newer.object = "older", &appsv1.ControllerRevision{Revision: 1}, "newer", &appsv1.ControllerRevision{Revision: 2}
	found := fitting(clusterOf(t, "{}"), map[string]*revision{"older": older, "newer": newer}, admitted(t, "v1", func(*corev1.Pod) {}))
	if found != newer {
		t.Errorf("it fits %+v", found)
	}
}

func TestDefaultsOfProbes(t *testing.T) {
	for name, test := range map[string]struct {
		wanted, have corev1.ProbeHandler
		want         bool
	}{
		"a path": {corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{}}, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Scheme: "HTTP"}}, true},
		"another path": {
			corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{}}, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/evil", Scheme: "HTTP"}}, false,
		},
		"a service":       {corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}, corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1, Service: new("")}}, true},
		"another service": {corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}, corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1, Service: new("evil")}}, false},
	} {
		podWith := func(handler corev1.ProbeHandler) *corev1.Pod {
			probe := &corev1.Probe{ProbeHandler: handler}
			return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", ReadinessProbe: probe}}}}
		}
		if got := fits(podWith(test.wanted), podWith(test.have)); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRequestsFollowLimits(t *testing.T) {
	wanted := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	wanted.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")}
	pod := wanted.DeepCopy()
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	if !fits(wanted, pod) {
		t.Error("it does not fit")
	}
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
	if fits(wanted, pod) {
		t.Error("it fits")
	}
}

// TestDefaultsOfTheHost are filled in by the server.
func TestDefaultsOfTheHost(t *testing.T) {
	wanted := &corev1.Pod{Spec: corev1.PodSpec{
		HostNetwork: true, Containers: []corev1.Container{{Name: "main", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/v"}}}},
	}}
	pod := wanted.DeepCopy()
	pod.Spec.Containers[0].Ports[0].HostPort = 80
	pod.Spec.Volumes[0].HostPath.Type = new(corev1.HostPathUnset)
	if !fits(wanted, pod) {
		t.Error("it does not fit")
	}
	pod.Spec.Containers[0].Ports[0].HostPort = 81
	if fits(wanted, pod) {
		t.Error("another port fits")
	}
}
