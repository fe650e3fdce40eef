// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/testenv"
)

// whoAmI is whom the API server takes the client for.
func whoAmI(t *testing.T, client kubernetes.Interface) authenticationv1.UserInfo {
	t.Helper()
	reviews := client.AuthenticationV1().SelfSubjectReviews()
	return must(reviews.Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))(t).Status.UserInfo
}

func TestServiceAccountTokens(t *testing.T) {
	w := newWorld(t)
	accounts := w.CoreV1().ServiceAccounts(w.namespace)
	testenv.Eventually(t, "the namespace has its default service account and root certificate", func() error {
		_, err := accounts.Get(t.Context(), "default", metav1.GetOptions{})
		certificate, certificateErr := w.configMap(t, "kube-root-ca.crt")
		if certificateErr == nil && certificate.Data["ca.crt"] != string(w.cluster.Config().CAData) {
			certificateErr = errors.New("the root certificate is not the one in the kubeconfig")
		}
		return errors.Join(err, certificateErr)
	})
	token := must(accounts.CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t).Status.Token
	config := &rest.Config{
		Host:            w.cluster.Config().Host,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: w.cluster.Config().CAData},
	}
	user := whoAmI(t, clientFor(t, config))
	if user.Username != "system:serviceaccount:"+w.namespace+":default" || !slices.Contains(user.Groups, "system:serviceaccounts:"+w.namespace) {
		t.Errorf("with its token it is %+v", user)
	}

	pod := w.startPod(t, "", corev1.RestartPolicyAlways)
	mounted := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Projected != nil })
	if pod.Spec.ServiceAccountName != "default" || !mounted {
		t.Errorf("a pod has service account %q and volumes %+v", pod.Spec.ServiceAccountName, pod.Spec.Volumes)
	}

	config.BearerToken += "x"
	_, err := clientFor(t, config).CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("a forged token gets %v", err)
	}
}

func TestRolesDecide(t *testing.T) {
	w := newWorld(t)
	identity := must(w.cluster.As("system:serviceaccount:" + w.namespace + ":operator"))(t)
	operator := clientFor(t, identity.Config())
	list := func() error {
		_, err := operator.CoreV1().ConfigMaps(w.namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) {
		t.Fatalf("without any role it gets %v", err)
	}
	roles := w.RbacV1()
	must(roles.Roles(w.namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{}))(t)
	must(roles.RoleBindings(w.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "operator"}},
	}, metav1.CreateOptions{}))(t)
	testenv.Eventually(t, "the role counts", list)

	_, err := operator.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), configMap("mine"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a verb that the role does not have gets %v", err)
	}
	if _, err := operator.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("another namespace gets %v", err)
	}
	try(t, roles.RoleBindings(w.namespace).Delete(t.Context(), "operator", metav1.DeleteOptions{}))
	testenv.Eventually(t, "the role counts no more", func() error {
		if err := list(); !apierrors.IsForbidden(err) {
			return errors.New("it is still allowed")
		}
		return nil
	})
}

// TestClusterRolesAggregate shows that the controllers of RBAC run: a role with a label becomes part of another.
func TestClusterRolesAggregate(t *testing.T) {
	w := newWorld(t)
	must(w.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace, Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{w.boatGroup()}, Resources: []string{"boats"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{}))(t)
	testenv.Eventually(t, "the role is part of view", func() error {
		view, err := w.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(view.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, w.boatGroup()) }) {
			return errors.New("it is not")
		}
		return nil
	})
}

func TestCertificateIsSigned(t *testing.T) {
	w := newWorld(t)
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "ada", Organization: []string{"sailors"}}}
	wanted := must(x509.CreateCertificateRequest(rand.Reader, template, key))(t)
	requests := w.CertificatesV1().CertificateSigningRequests()
	request := must(requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: wanted}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{}))(t)
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Tested",
	}}
	must(requests.UpdateApproval(t.Context(), request.Name, request, metav1.UpdateOptions{}))(t)
	testenv.Eventually(t, "the certificate is issued", func() (err error) {
		request, err = requests.Get(t.Context(), request.Name, metav1.GetOptions{})
		if err == nil && len(request.Status.Certificate) == 0 {
			err = errors.New("there is none yet")
		}
		return err
	})

	keyDER := must(x509.MarshalECPrivateKey(key))(t)
	user := whoAmI(t, clientFor(t, &rest.Config{
		Host: w.cluster.Config().Host,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   w.cluster.Config().CAData,
			CertData: request.Status.Certificate,
			KeyData:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		},
	}))
	if user.Username != "ada" || !slices.Contains(user.Groups, "sailors") {
		t.Errorf("with its certificate it is %+v", user)
	}
}

func TestAnonymousMayDoNothing(t *testing.T) {
	w := newWorld(t)
	nobody := clientFor(t, &rest.Config{
		Host:            w.cluster.Config().Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: w.cluster.Config().CAData},
	})
	_, err := nobody.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("a client without credentials gets %v", err)
	}
}
