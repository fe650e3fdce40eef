// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestReadinessGates(t *testing.T) {
	w := newWorld(t)
	p := pod("", corev1.RestartPolicyAlways)
	const gate = "test.opdock.dev/open"
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
	made := w.createPod(t, p)
	f := w.follow(t, made)
	f.expect(t, "Running: running, ReadinessGatesNotReady")
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":"True"}]}}`, gate)
	must(w.CoreV1().Pods(w.namespace).Patch(t.Context(), made.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"))(t)
	f.expect(t, "Running: running, Ready")
}

func TestDeadlineEndsPod(t *testing.T) {
	w := newWorld(t)
	p := pod("", corev1.RestartPolicyAlways)
	seconds := int64(1)
	p.Spec.ActiveDeadlineSeconds = &seconds
	seen := w.follow(t, w.createPod(t, p)).expect(t, "Running: running, Ready", "Failed: Error 143, PodFailed")
	if seen.Status.Reason != "DeadlineExceeded" {
		t.Errorf("it failed for %q", seen.Status.Reason)
	}
}

func TestFinalizerHoldsPodBack(t *testing.T) {
	w := newWorld(t)
	p := pod("", corev1.RestartPolicyAlways)
	p.Finalizers = []string{"test.opdock.dev/hold"}
	made := w.createPod(t, p)
	f := w.follow(t, made)
	f.expect(t, "Running: running, Ready")
	pods := w.CoreV1().Pods(w.namespace)
	try(t, pods.Delete(t.Context(), made.Name, metav1.DeleteOptions{}))
	f.expect(t, "Failed: Error 143, PodFailed")
	must(pods.Patch(t.Context(), made.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))(t)
	f.expect(t, "gone")
}

func TestResizeTakesEffect(t *testing.T) {
	w := newWorld(t)
	p := pod("", corev1.RestartPolicyAlways)
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	made := w.awaitReady(t, w.createPod(t, p).Name)
	patch := []byte(`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"200m"}}}]}}`)
	must(w.CoreV1().Pods(w.namespace).Patch(t.Context(), made.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize"))(t)
	w.awaitPod(t, made.Name, "is resized", func(p *corev1.Pod) error {
		status := p.Status.ContainerStatuses[0]
		if status.Resources == nil {
			return errors.New("it has no resources in its status")
		}
		return errors.Join(
			expect("cpu", status.Resources.Requests.Cpu().String(), "200m"),
			expect("restarts", status.RestartCount, 0),
		)
	})
}

func TestInitContainersAndSidecars(t *testing.T) {
	w := newWorld(t)
	p := pod("", corev1.RestartPolicyNever)
	always := corev1.ContainerRestartPolicyAlways
	p.Spec.InitContainers = []corev1.Container{
		{Name: "setup", Image: "setup:1"},
		{Name: "proxy", Image: "proxy:1", RestartPolicy: &always},
	}
	seen := w.awaitReady(t, w.createPod(t, p).Name)
	var told []string
	for _, status := range seen.Status.InitContainerStatuses {
		told = append(told, status.Name+" "+tellState(status.State))
	}
	if fmt.Sprint(told) != "[setup Completed 0 proxy running]" {
		t.Errorf("they are %v", told)
	}
}

func TestAddresses(t *testing.T) {
	w := newWorld(t)
	w.startDeployment(t, deployment("web", 5))
	host := pod("", corev1.RestartPolicyAlways)
	host.Spec.HostNetwork = true
	onHost := w.awaitReady(t, w.createPod(t, host).Name)
	if onHost.Status.PodIP != onHost.Status.HostIP {
		t.Errorf("on the host network the pod has %s and its node %s", onHost.Status.PodIP, onHost.Status.HostIP)
	}
	network := netip.MustParsePrefix("10.128.0.0/9")
	owner := map[string]string{}
	pods := w.pods(t, "web")
	for i := range pods {
		address := pods[i].Status.PodIP
		if parsed, err := netip.ParseAddr(address); err != nil || !network.Contains(parsed) {
			t.Errorf("pod %s has address %q", pods[i].Name, address)
		}
		if other, taken := owner[address]; taken {
			t.Errorf("pods %s and %s both have %s", pods[i].Name, other, address)
		}
		owner[address] = pods[i].Name
	}
}
