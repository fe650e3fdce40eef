// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

const usageAnnotation = "opdock.dev/usage"

// kubectl runs kubectl in the namespace of the test and returns what it prints.
func (w *world) kubectl(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	output, err := w.kubectlCommand(t, arguments...).CombinedOutput()
	return string(output), err
}

// kubectlCommand is kubectl in the namespace of the test, to be started.
func (w *world) kubectlCommand(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(must(cluster.Assets(testenv.ControlPlane(t)))(t), "kubectl")
	return exec.CommandContext(within(t), program, append([]string{"--kubeconfig", w.cluster.Kubeconfig(), "-n", w.namespace}, arguments...)...)
}

func TestTop(t *testing.T) {
	w := newWorld(t)
	p := pod("", corev1.RestartPolicyAlways)
	p.Annotations = map[string]string{usageAnnotation: "cpu=250m,memory=64Mi"}
	made := w.createPod(t, p)
	w.awaitReady(t, made.Name)
	testenv.Eventually(t, "kubectl top shows what the annotation says", func() error {
		out, err := w.kubectl(t, "top", "pod", made.Name, "--no-headers")
		if err != nil || strings.Join(strings.Fields(out), " ") != made.Name+" 250m 64Mi" {
			return fmt.Errorf("%w: %s", errors.Join(err, errors.New("not yet")), out)
		}
		return nil
	})
	out, err := w.kubectl(t, "top", "node", "--no-headers")
	if err != nil || !strings.HasPrefix(out, "node-0") {
		t.Errorf("top node: %v\n%s", err, out)
	}
	// It is known to discovery and explained.
	if out, err := w.kubectl(t, "get", "pods.metrics.k8s.io", made.Name, "-o", "jsonpath={.containers[0].usage.cpu}"); err != nil || out != "250m" {
		t.Errorf("get: %v\n%s", err, out)
	}
}

func TestBadUsageIsExplained(t *testing.T) {
	w := newWorld(t)
	p := pod("", corev1.RestartPolicyAlways)
	p.Annotations = map[string]string{usageAnnotation: "cpu=100m 50m@soon"}
	made := w.createPod(t, p)
	event := w.awaitEvent(t, made.Name, "UnknownUsage")
	if event.Type != corev1.EventTypeWarning || !strings.Contains(event.Message, "50m@soon") || !strings.Contains(event.Message, "Valid are") {
		t.Errorf("the event says %s: %s", event.Type, event.Message)
	}
	w.awaitReady(t, made.Name)
}

// TestAutoscalerScales changes what a Deployment's pods use together, and has the autoscaler follow up and down.
func TestAutoscalerScales(t *testing.T) {
	w := newWorld(t)
	web := deployment("web", 1)
	web.Spec.Template.Annotations = map[string]string{usageAnnotation: "cpu=800m,shared"}
	web.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("400m")}
	w.startDeployment(t, web)
	utilization, immediately := int32(50), int32(0)
	autoscalers := w.AutoscalingV2().HorizontalPodAutoscalers(w.namespace)
	must(autoscalers.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MaxReplicas:    8,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &utilization},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &immediately},
			},
		},
	}, metav1.CreateOptions{}))(t)
	has := func(replicas int32) func() error {
		return func() error {
			found, err := w.AppsV1().Deployments(w.namespace).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return expect("the number of available replicas", found.Status.AvailableReplicas, replicas)
		}
	}
	// 800m at 200m for each pod.
	testenv.Eventually(t, "it scales up", has(4))
	pods := must(w.CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"}))(t)
	for _, p := range pods.Items {
		patch := []byte(`{"metadata":{"annotations":{"` + usageAnnotation + `":"cpu=300m,shared"}}}`)
		must(w.CoreV1().Pods(w.namespace).Patch(t.Context(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{}))(t)
	}
	testenv.Eventually(t, "it scales down", has(2))
}
