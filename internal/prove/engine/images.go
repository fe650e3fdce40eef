// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// imagePull is the variant in which pods cannot pull their images from the beginning.
	imagePull = "image-pull"
	// imagePullError is the behaviour of such a pod. It has no effect on a pod that runs already, because that has its image.
	imagePullError = "image-pull-error"

	pullPolicy = "prove-image-pull"
)

// failPulls runs the step while no pod can pull its image.
func failPulls(r *run, p *Plan) *disturbance {
	return &disturbance{
		afterStep: true,
		act: func(ctx context.Context) error {
			if err := r.beginPullErrors(ctx, ""); err != nil {
				return err
			}
			return r.do(ctx, p.Step)
		},
		meanwhile: r.falseReady(p.Step),
		heal: func(ctx context.Context) error {
			return r.endPullErrors(ctx, "", func(*unstructured.Unstructured) bool { return true })
		},
	}
}

// beginPullErrors lets new pods fail to pull images that contain a text. The annotation must be set when a pod is created, by any
// client, so the API server adds it.
func (r *run) beginPullErrors(ctx context.Context, image string) error {
	policy, binding := pullPolicies(image)
	for _, object := range []client.Object{policy, binding} {
		if err := r.objects.Create(ctx, object, client.FieldOwner(manager)); err != nil {
			return fmt.Errorf("creating the admission policy for pods: %w", err)
		}
	}
	return r.awaitPods(ctx, image, imagePullError)
}

// endPullErrors lets new pods pull their images, and those of the others that recover.
func (r *run) endPullErrors(ctx context.Context, image string, recovers func(pod *unstructured.Unstructured) bool) error {
	policy, binding := pullPolicies(image)
	for _, object := range []client.Object{binding, policy} {
		if err := client.IgnoreNotFound(r.objects.Delete(ctx, object)); err != nil {
			return fmt.Errorf("deleting the admission policy for pods: %w", err)
		}
	}
	if err := r.awaitPods(ctx, image, ""); err != nil {
		return err
	}
	for _, pod := range r.pods() {
		if pod.GetAnnotations()[behaviour] != imagePullError || !recovers(pod) {
			continue
		}
		if err := r.annotate(ctx, pod, behaviour, nil); err != nil {
			return err
		}
	}
	return nil
}

// pullPolicies annotate new pods that have no behaviour annotation, and an image that contains a text.
func pullPolicies(image string) (*admissionv1.MutatingAdmissionPolicy, *admissionv1.MutatingAdmissionPolicyBinding) {
	ignore, never := admissionv1.Ignore, admissionv1.NeverReinvocationPolicy
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: pullPolicy},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "says-nothing", Expression: fmt.Sprintf("!has(object.metadata.annotations) || !(%q in object.metadata.annotations)", behaviour),
			}, {
				Name: "image", Expression: fmt.Sprintf("object.spec.containers.exists(c, has(c.image) && c.image.contains(%[1]q)) || "+
					"has(object.spec.initContainers) && object.spec.initContainers.exists(c, has(c.image) && c.image.contains(%[1]q))", image),
			}},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{
					Expression: fmt.Sprintf("Object{metadata: Object.metadata{annotations: {%q: %q}}}", behaviour, imagePullError),
				},
			}},
			FailurePolicy: &ignore, ReinvocationPolicy: never,
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: pullPolicy}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: pullPolicy},
	}
	return policy, binding
}

// An API server learns of a policy a little after it was created.
const (
	policyInterval = 20 * time.Millisecond
	policyPatience = 20 * time.Second
)

// awaitPods waits until new pods with an image get the behaviour.
func (r *run) awaitPods(ctx context.Context, image, want string) error {
	return wait.PollUntilContextTimeout(ctx, policyInterval, policyPatience, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: pullPolicy},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "none", Image: "none" + image}}},
		}
		if err := r.objects.Create(ctx, pod, client.DryRunAll); err != nil {
			return false, fmt.Errorf("asking how new pods behave: %w", err)
		}
		return pod.Annotations[behaviour] == want, nil
	})
}
