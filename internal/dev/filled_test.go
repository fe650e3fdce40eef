// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/pki"
)

// rotating are the manifests of an operator that makes its certificates itself.
func rotating(t *testing.T) manifests {
	t.Helper()
	webhooks := object(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: crew}, webhooks: [{name: a.example.com,
		clientConfig: {service: {name: crew, namespace: crew-system, path: /validate}}}]}`)
	return manifests{webhooks: []*unstructured.Unstructured{webhooks}, all: []*unstructured.Unstructured{
		webhooks,
		object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: crew-system}, spec: {template: {spec: {
			containers: [{name: manager, volumeMounts: [{name: cert, mountPath: /certs/}, {name: token, mountPath: /token}, {name: login, mountPath: /login}]}],
			volumes: [{name: cert, secret: {secretName: serving}}, {name: token, secret: {secretName: elsewhere}}, {name: login, secret: {secretName: login}}]}}}}`),
		object(t, "{apiVersion: v1, kind: Secret, metadata: {name: serving, namespace: crew-system}}"),
		object(t, "{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: crew-system}, stringData: {password: a}}"),
	}}
}

func TestSecretsThatTheOperatorFills(t *testing.T) {
	m := rotating(t)
	if got := m.filledSecrets(); len(got) != 1 || got[0].name != "serving" || !slices.Equal(got[0].dirs, []string{"/certs"}) {
		t.Errorf("got %v", got)
	}
	m.webhooks = nil
	if got := m.filledSecrets(); got != nil {
		t.Errorf("without webhooks: got %v", got)
	}
}

// The operator's authority is for the name of a Service. What is served has to be good for this machine as well.
func TestCertificatesOfTheOperatorAreTaken(t *testing.T) {
	now := time.Now()
	authority, err := pki.NewAuthority("crew-ca", now, 10*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	made, err := makeCertificates(t.TempDir(), now)
	if err != nil {
		t.Fatal(err)
	}
	before := string(made.authority)
	const service = "crew.crew-system.svc"
	own, err := authority.Client(service, nil, now, time.Hour) // any certificate has a name
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "crew-system", Name: "serving"}}
	server := fake.NewClientBuilder().WithObjects(secret).Build()
	s := &Session{applier: &applier{server: server}, certificates: made, manifests: rotating(t)}
	if err := s.takeCertificates(t.Context()); err != nil || string(made.authority) != before {
		t.Fatalf("before the operator has filled it: %v", err)
	}
	secret.Data = map[string][]byte{"ca.crt": authority.Certificate, "ca.key": authority.Key, "tls.crt": own.Certificate, "tls.key": own.Key}
	if err := server.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := s.takeCertificates(t.Context()); err != nil {
		t.Fatal(err)
	}
	if string(made.authority) != string(authority.Certificate) {
		t.Error("the webhook configurations get another authority")
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(made.dir, "tls.crt"), filepath.Join(made.dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: loopback, Roots: roots}); err != nil {
		t.Error(err)
	}
	if pair.Leaf.Subject.CommonName != service {
		t.Errorf("it is for %v", pair.Leaf.Subject)
	}
	block, _ := pem.Decode(authority.Certificate)
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil || pair.Leaf.NotAfter.After(root.NotAfter) {
		t.Errorf("it ends at %v, after its authority, %v", pair.Leaf.NotAfter, err)
	}
	if info, err := os.Stat(filepath.Join(made.dir, "ca.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key of the authority: %v, %v", info, err)
	}
	// What was taken is not made again: the operator would notice.
	if err := s.takeCertificates(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, err := tls.LoadX509KeyPair(filepath.Join(made.dir, "tls.crt"), filepath.Join(made.dir, "tls.key")); err != nil || !again.Leaf.Equal(pair.Leaf) {
		t.Errorf("another certificate was made, %v", err)
	}
	secret.Data["ca.crt"] = []byte("nonsense")
	if err := server.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := s.takeCertificates(t.Context()); err == nil {
		t.Error("nonsense was taken")
	}
}
