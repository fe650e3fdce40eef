// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/testenv"
)

// TestRightsThatOnlyBodiesShow makes writes for which the API server checks a right that no request asks for.
func TestRightsThatOnlyBodiesShow(t *testing.T) {
	w := newWorld(t, "application/json", nil)
	name := w.namespace // of objects that are in no namespace
	implied := func(resource string, number int) string {
		t.Helper()
		requests := w.requests(resource)
		if len(requests) <= number {
			t.Fatalf("there are %d requests for %s", len(requests), resource)
		}
		var said []string
		for _, one := range requests[number].Implies {
			said = append(said, strings.TrimSuffix(fmt.Sprintf("%s %s.%s %s/%s", one.Verb, one.Resource.Resource, one.Resource.Group, one.Resource.Namespace, one.Resource.Name), " /"))
		}
		return strings.Join(said, ", ")
	}
	expect := func(resource string, want ...string) {
		t.Helper()
		for i, one := range want {
			if got := implied(resource, i); got != one {
				t.Errorf("write %d of %s implies %q, not %q", i, resource, got, one)
			}
		}
	}

	requests := w.client.CertificatesV1().CertificateSigningRequests()
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	der := must[[]byte](t)(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key))
	csr := must[*certificatesv1.CertificateSigningRequest](t)(requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: "example.com/shop", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature},
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}, metav1.CreateOptions{}))
	t.Cleanup(func() { _ = requests.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "Test"}}
	csr = must[*certificatesv1.CertificateSigningRequest](t)(requests.UpdateStatus(t.Context(), csr, metav1.UpdateOptions{}))
	must[*certificatesv1.CertificateSigningRequest](t)(requests.UpdateStatus(t.Context(), csr, metav1.UpdateOptions{}))
	expect("certificatesigningrequests", "", "sign signers.certificates.k8s.io /example.com/shop", "")

	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: "apps", Resource: "deployments", Namespace: w.namespace},
	}}
	must[*authorizationv1.SelfSubjectAccessReview](t)(w.client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{}))
	expect("selfsubjectaccessreviews", "list deployments.apps "+w.namespace+"/")

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}}
	must[*rbacv1.Role](t)(w.client.RbacV1().Roles(w.namespace).Create(t.Context(), role, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	expect("roles", "escalate roles.rbac.authorization.k8s.io "+w.namespace+"/, get pods. "+w.namespace+"/")

	policies := w.client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	policy := must[*admissionregistrationv1.ValidatingAdmissionPolicy](t)(policies.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"none": name}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "true"}},
		},
	}, metav1.CreateOptions{}))
	t.Cleanup(func() { _ = policies.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	// A controller of the cluster writes the status of a new policy; an update before that would be a conflict.
	testenv.Eventually(t, "the policy is checked", func() error {
		var err error
		if policy, err = w.direct.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if policy.Status.ObservedGeneration != policy.Generation {
			return fmt.Errorf("its status is about generation %d", policy.Status.ObservedGeneration)
		}
		return nil
	})
	policy.Annotations = map[string]string{"a": "b"}
	must[*admissionregistrationv1.ValidatingAdmissionPolicy](t)(policies.Update(t.Context(), policy, metav1.UpdateOptions{}))
	expect("validatingadmissionpolicies", "get configmaps.", "")

	bindings := w.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	for i, reference := range []*admissionregistrationv1.ParamRef{
		{Namespace: w.namespace, Name: "limits"}, {Namespace: w.namespace, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}, nil,
	} {
		if reference != nil {
			reference.ParameterNotFoundAction = ptr.To(admissionregistrationv1.AllowAction)
		}
		binding := must[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t)(bindings.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(name, i)},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ParamRef: reference, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}, metav1.CreateOptions{}))
		t.Cleanup(func() { _ = bindings.Delete(context.Background(), binding.Name, metav1.DeleteOptions{}) })
	}
	expect("validatingadmissionpolicybindings", "get configmaps. "+w.namespace+"/limits", "list configmaps. "+w.namespace+"/", "")
}
