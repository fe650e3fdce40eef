// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// addSidecars makes the API server add containers to all new pods of a namespace, up to the given number. It returns
// when the policy is in effect.
func addSidecars(ctx context.Context, c client.Client, namespace string, containers int) error {
	var sidecars []string
	for i := 2; i <= containers; i++ {
		sidecars = append(sidecars, fmt.Sprintf(`Object.spec.containers{name: "sidecar-%d", image: "sidecar"}`, i))
	}
	if len(sidecars) == 0 {
		return nil
	}
	metadata := metav1.ObjectMeta{Name: "sidecars-" + namespace}
	failurePolicy, operation := admissionregistrationv1.Fail, admissionregistrationv1.Create
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metadata,
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &failurePolicy, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{operation},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
					Expression: "Object{spec: Object.spec{containers: [" + strings.Join(sidecars, ", ") + "]}}",
				},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metadata, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: metadata.Name},
	}
	for _, object := range []client.Object{policy, binding} {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("adding sidecars: %w", err)
		}
	}
	return await(ctx, func(ctx context.Context) (string, error) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "web"}}},
		}
		if err := c.Create(ctx, pod, client.DryRunAll); err != nil {
			return err.Error(), nil //nolint:nilerr // the server refuses pods until the namespace has a service account
		}
		if len(pod.Spec.Containers) == containers {
			return "", nil
		}
		return "pods do not get sidecars", nil
	})
}
