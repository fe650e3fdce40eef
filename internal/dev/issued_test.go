// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/project"
)

func TestIssuedSecrets(t *testing.T) {
	made, err := makeCertificates(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	all := []*unstructured.Unstructured{
		object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: crew-system}, spec: {template: {spec: {
			containers: [{name: manager, volumeMounts: [{name: cert, mountPath: /certs}]}], volumes: [{name: cert, secret: {secretName: serving}}]}}}}`),
		object(t, "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: crew-system}, spec: {secretName: serving}}"),
		object(t, "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: b, namespace: crew-system}, spec: {secretName: given}}"),
		object(t, "{apiVersion: v1, kind: Secret, metadata: {name: given, namespace: crew-system}}"),
	}
	s := &Session{manifests: manifests{all: all}, certificates: made}
	secrets := s.certificates.issued(all)
	if len(secrets) != 1 || secrets[0].GetName() != "serving" || secrets[0].GetNamespace() != "crew-system" {
		t.Fatalf("got %v", secrets)
	}
	files := mountedFiles(s.withIssued(), nil)
	if files["/certs/ca.crt"] != string(made.authority) || !strings.Contains(files["/certs/tls.key"], "PRIVATE KEY") || !strings.Contains(files["/certs/tls.crt"], "CERTIFICATE") {
		t.Errorf("the container has %v", files)
	}
	if got := (*certificates)(nil).issued(all); got != nil {
		t.Errorf("without certificates: got %v", got)
	}
}

// TestRenewal starts a second session, whose certificate is another one.
func TestRenewal(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	certificate := object(t, "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: crew-system}, spec: {secretName: serving}}")
	key := func() string {
		made, err := makeCertificates(t.TempDir(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s := &Session{
			Options: Options{Cluster: Cluster{CallsBack: true}}, applier: &applier{server: server}, certificates: made,
			manifests: manifests{all: []*unstructured.Unstructured{certificate}, identity: &project.Identity{Namespace: "crew-system", ServiceAccount: "crew"}},
		}
		if err := s.create(t.Context(), s.withIssued()[1:]); err != nil {
			t.Fatal(err)
		}
		there := &corev1.Secret{}
		if err := server.Get(t.Context(), client.ObjectKey{Namespace: "crew-system", Name: "serving"}, there); err != nil {
			t.Fatal(err)
		}
		return there.StringData["tls.key"]
	}
	first := key()
	if first == "" || first == key() {
		t.Error("the second session left the certificate of the first")
	}
	// One that cert-manager or the user made stays.
	if err := server.Update(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crew-system", Name: "serving"}, StringData: map[string]string{"tls.key": "mine"},
	}); err != nil {
		t.Fatal(err)
	}
	if got := key(); got != "mine" {
		t.Errorf("got %q", got)
	}
}
