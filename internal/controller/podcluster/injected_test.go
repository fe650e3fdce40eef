// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/testenv"
)

// Without managed fields the server does not record who changes a pod.
func TestAPodWithoutManagedFields(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", `{podReplicas: 1, image: a, template: {metadata: {annotations: {note: mine}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main}]}}}`))
	before := s.pod("web-0")
	s.patch(s.pod("web-0"), `{"metadata": {"managedFields": [{}]}}`)
	s.patch(s.pod("web-0"), `{"metadata": {"annotations": {"note": "theirs"}}}`)
	fleettest.Await(t, s, s.podNamed("web-0"), func(pod *corev1.Pod) string {
		if note := pod.Annotations["note"]; note != "mine" {
			return "its note is " + note
		}
		return ""
	})
	if pod := s.pod("web-0"); pod.UID != before.UID || len(pod.ManagedFields) > 0 {
		t.Errorf("the pod has become %+v", pod.ObjectMeta)
	}
	s.patch(s.pod("web-0"), `{"spec": {"activeDeadlineSeconds": 5000}}`)
	if pod := s.awaitSuccessor(before); pod.Spec.ActiveDeadlineSeconds != nil || len(pod.ManagedFields) == 0 {
		t.Errorf("the pod has become %+v", pod)
	}
	s.awaitReady(cluster)
}

// inject lets the server add a container to every pod of the namespace, and replace its image, as injectors and mirrors do.
func (s *stage) inject() {
	s.Helper()
	metadata := metav1.ObjectMeta{Name: "injector-" + s.namespace}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metadata,
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{spec: Object.spec{containers: [
					Object.spec.containers{name: "proxy", image: "proxy"}, Object.spec.containers{name: "main", image: "mirror/a"}]}}`},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metadata, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: metadata.Name},
	}
	for _, object := range []client.Object{policy, binding} {
		if err := s.Create(s.Context(), object); err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() { _ = s.Delete(context.WithoutCancel(s.Context()), object) })
	}
	testenv.Await(s.TB, func() string {
		probe := s.podNamed("probe")
		probe.Spec.Containers = []corev1.Container{{Name: "main", Image: "a"}}
		switch err := s.Create(s.Context(), probe, client.DryRunAll); {
		case err != nil:
			return err.Error()
		case len(probe.Spec.Containers) < 2:
			return "nothing is injected"
		}
		return ""
	})
}

func TestInjectedContainers(t *testing.T) {
	s := newStage(t)
	s.inject()
	cluster := s.awaitReady(s.create("web", "{podReplicas: 1, image: a, template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: main}]}}}"))
	images := func(pod *corev1.Pod) string {
		var all []string
		for _, container := range pod.Spec.Containers {
			all = append(all, container.Name+"="+container.Image)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	const injected = "main=mirror/a proxy=proxy"
	before := s.pod("web-0")
	if got := images(before); got != injected {
		t.Fatalf("the images are %s", got)
	}
	// What admission did stays, also when something else is restored, and after a restart.
	s.patch(s.pod("web-0"), `{"metadata": {"labels": {"app.kubernetes.io/instance": "elsewhere"}}}`)
	fleettest.Await(t, s, s.podNamed("web-0"), func(pod *corev1.Pod) string {
		if pod.Labels[flow.LabelInstance] != "web" {
			return "it lacks a label"
		}
		return ""
	})
	s.stop()
	s.run()
	s.awaitReady(s.create("another", "{podReplicas: 1, image: a}"))
	if writes := s.wire.Writes(); slices.ContainsFunc(writes, func(write string) bool { return strings.HasSuffix(write, "/web-0") }) {
		t.Errorf("a restart writes %v", writes)
	}
	if pod := s.pod("web-0"); pod.UID != before.UID || images(pod) != injected {
		t.Errorf("the pod has become %s: %s", pod.UID, images(pod))
	}
	// What another writer has changed since does not.
	proxy := slices.IndexFunc(before.Spec.Containers, func(c corev1.Container) bool { return c.Name == "proxy" })
	s.patch(s.pod("web-0"), fmt.Sprintf(`[{"op": "replace", "path": "/spec/containers/%d/image", "value": "evil"}]`, proxy))
	s.await(cluster, func(cluster *kubegroupv1.PodCluster) string {
		if cluster.Status.Conditions[0].Status == metav1.ConditionTrue && s.pod("web-0").UID == before.UID {
			return "it is Ready"
		}
		return ""
	})
	if got := images(s.awaitSuccessor(before)); got != injected {
		t.Errorf("the images are %s", got)
	}
	s.awaitReady(cluster)
}
