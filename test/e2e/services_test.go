// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/opdock/opdock/internal/testenv"
)

// convert turns one representation of an object into another.
func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
}

// endpoints are the addresses behind a Service and whether they are ready.
func (w *world) endpoints(t *testing.T, name string) map[string]bool {
	t.Helper()
	slicesOf := must(w.DiscoveryV1().EndpointSlices(w.namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + name,
	}))(t)
	found := map[string]bool{}
	for _, slice := range slicesOf.Items {
		for _, endpoint := range slice.Endpoints {
			found[endpoint.Addresses[0]] = endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready
		}
	}
	return found
}

func TestServiceHasEndpoints(t *testing.T) {
	w := newWorld(t)
	made := must(w.CoreV1().Services(w.namespace).Create(t.Context(), service("web"), metav1.CreateOptions{}))(t)
	if !strings.HasPrefix(made.Spec.ClusterIP, "10.96.") {
		t.Errorf("its cluster IP is %q", made.Spec.ClusterIP)
	}
	w.startDeployment(t, deployment("web", 3))
	pods := w.pods(t, "web")
	testenv.Eventually(t, "the addresses of all pods are ready endpoints", func() error {
		found := w.endpoints(t, "web")
		for i := range pods {
			if !found[pods[i].Status.PodIP] {
				return fmt.Errorf("%s is not among %v", pods[i].Status.PodIP, found)
			}
		}
		return expect("number of endpoints", len(found), 3)
	})

	w.annotatePod(t, pods[0].Name, "never-ready")
	testenv.Eventually(t, "a pod that is not ready is an endpoint that is not ready", func() error {
		found := w.endpoints(t, "web")
		if ready, known := found[pods[0].Status.PodIP]; !known || ready {
			return fmt.Errorf("%s is not so in %v", pods[0].Status.PodIP, found)
		}
		return nil
	})
}

func TestAutoscalerHasStatus(t *testing.T) {
	w := newWorld(t)
	w.startDeployment(t, deployment("web", 1))
	utilization := int32(50)
	autoscalers := w.AutoscalingV2().HorizontalPodAutoscalers(w.namespace)
	must(autoscalers.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MaxReplicas:    3,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &utilization},
			}}},
		},
	}, metav1.CreateOptions{}))(t)
	// Its pods request no CPU, so there is nothing that a utilization could be a part of, and that is what it says.
	testenv.Eventually(t, "it can scale and has no utilization", func() error {
		found, err := autoscalers.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		have := map[autoscalingv2.HorizontalPodAutoscalerConditionType]corev1.ConditionStatus{}
		for _, condition := range found.Status.Conditions {
			have[condition.Type] = condition.Status
		}
		return errors.Join(
			expect("AbleToScale", have[autoscalingv2.AbleToScale], corev1.ConditionTrue),
			expect("ScalingActive", have[autoscalingv2.ScalingActive], corev1.ConditionFalse),
			expect("currentReplicas", found.Status.CurrentReplicas, 1),
		)
	})
}

func TestDisruptionBudgetGuardsEviction(t *testing.T) {
	w := newWorld(t)
	w.startDeployment(t, deployment("web", 2))
	budgets := w.PolicyV1().PodDisruptionBudgets(w.namespace)
	least := intstr.FromInt32(2)
	must(budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}, metav1.CreateOptions{}))(t)
	awaitAllowed := func(want int32) {
		t.Helper()
		testenv.Eventually(t, fmt.Sprintf("%d disruptions are allowed", want), func() error {
			found, err := budgets.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return errors.Join(
				expect("observedGeneration", found.Status.ObservedGeneration, found.Generation),
				expect("disruptionsAllowed", found.Status.DisruptionsAllowed, want),
			)
		})
	}
	victim := w.pods(t, "web")[0].Name
	evict := func() error {
		return w.PolicyV1().Evictions(w.namespace).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: victim}})
	}

	awaitAllowed(0)
	if err := evict(); !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Fatalf("with none to spare the eviction got %v", err)
	}
	w.scale(t, "web", 3)
	awaitAllowed(1)
	if err := evict(); err != nil {
		t.Fatalf("with one to spare the eviction got %v", err)
	}
	testenv.Eventually(t, "the pod is gone and replaced", func() error {
		pods := w.pods(t, "web")
		if slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Name == victim }) {
			return errors.New("it is still there")
		}
		return expect("number of pods", len(pods), 3)
	})
}

func TestQuotaCountsAndRefuses(t *testing.T) {
	w := newWorld(t)
	quotas := w.CoreV1().ResourceQuotas(w.namespace)
	must(quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/secrets":            resource.MustParse("2"),
			corev1.ResourcePods:        resource.MustParse("5"),
			corev1.ResourceRequestsCPU: resource.MustParse("1"),
		}},
	}, metav1.CreateOptions{}))(t)
	awaitUsed := func(name corev1.ResourceName, want string) {
		t.Helper()
		testenv.Eventually(t, fmt.Sprintf("%s of %s are used", want, name), func() error {
			found, err := quotas.Get(t.Context(), "small", metav1.GetOptions{})
			if err != nil {
				return err
			}
			used := found.Status.Used[name]
			if _, known := found.Status.Hard[name]; !known {
				return errors.New("it is not in force yet")
			}
			return expect("used", used.String(), want)
		})
	}
	secrets := w.CoreV1().Secrets(w.namespace)
	create := func(name string) error {
		_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	refused := func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: small")
	}

	awaitUsed("count/secrets", "0")
	// Admission looks at a copy of the quota, which may still be the one from before it was in force.
	testenv.Eventually(t, "admission knows the quota", func() error {
		greedy := container("web:1")
		greedy.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		_, err := w.CoreV1().Pods(w.namespace).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "greedy"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{greedy}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !refused(err) {
			return fmt.Errorf("a pod that wants too much got %v", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
	try(t, create("one"))
	try(t, create("two"))
	if err := create("three"); !refused(err) {
		t.Fatalf("one too many got %v", err)
	}
	awaitUsed("count/secrets", "2")
	// When something is deleted, the controller counts the quota again, and not admission.
	try(t, secrets.Delete(t.Context(), "one", metav1.DeleteOptions{}))
	awaitUsed("count/secrets", "1")
	// Admission looks at a copy of the quota that may be a moment older.
	testenv.Eventually(t, "there is room for another", func() error { return create("three") })

	d := deployment("web", 3)
	d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	must(w.AppsV1().Deployments(w.namespace).Create(t.Context(), d, metav1.CreateOptions{}))(t)
	awaitUsed(corev1.ResourceRequestsCPU, "1")
	testenv.Eventually(t, "the third pod is refused", func() error {
		events, err := w.CoreV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("no event says so")
		}
		return err
	})
	if pods := w.pods(t, "web"); len(pods) != 2 {
		t.Errorf("there are %d pods", len(pods))
	}
}
