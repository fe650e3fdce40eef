// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/dev/mounts"
)

// rotator makes the certificates of an operator, as libraries for it do: in a Secret, which it waits for to be mounted, and with
// its authority in the webhook configurations, which it waits for to exist.
const rotator = `package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

const certificates = "/etc/ship-certificates"

func made(template, parent *x509.Certificate, parentKey *rsa.PrivateKey) (certificate, key []byte, own *rsa.PrivateKey, err error) {
	if own, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return
	}
	if parentKey == nil {
		parentKey = own
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, own.Public(), parentKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(own)}), own, err
}

func rotate() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	server, err := client.New(config.GetConfigOrDie(), client.Options{})
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := server.Get(ctx, client.ObjectKey{Namespace: "ship-system", Name: "ship-serving"}, secret); err != nil {
		return err
	}
	if secret.Data == nil {
		authority := &x509.Certificate{Subject: pkix.Name{CommonName: "ship-ca"}, DNSNames: []string{"ship-ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
		secret.Data = map[string][]byte{}
		var key *rsa.PrivateKey
		if secret.Data["ca.crt"], secret.Data["ca.key"], key, err = made(authority, authority, nil); err != nil {
			return err
		}
		serving := &x509.Certificate{Subject: pkix.Name{CommonName: "ship"}, DNSNames: []string{"ship-webhook-service.ship-system.svc"}}
		if secret.Data["tls.crt"], secret.Data["tls.key"], _, err = made(serving, authority, key); err != nil {
			return err
		}
		if err := server.Update(ctx, secret); err != nil {
			return err
		}
	}
	if err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		_, err := os.Stat(certificates + "/tls.crt")
		return err == nil, nil
	}); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		hooks := &admissionv1.ValidatingWebhookConfiguration{}
		if server.Get(ctx, client.ObjectKey{Name: "ship-validating-webhook-configuration"}, hooks) != nil {
			return false, nil
		}
		for i := range hooks.Webhooks {
			hooks.Webhooks[i].ClientConfig.CABundle = secret.Data["ca.crt"]
		}
		return server.Update(ctx, hooks) == nil, nil
	})
}
`

// TestOwnCertificates has an operator that makes the certificates of its webhooks itself.
func TestOwnCertificates(t *testing.T) {
	if err := mounts.Check(mounts.List{}); err != nil {
		t.Skipf("this system does not let an operator see other files: %v", err)
	}
	p := newProject(t, "ship")
	p.edit(t, "config/manager/manager.yaml", "        image: controller:latest\n", `        image: controller:latest
        volumeMounts: [{name: serving, mountPath: /etc/ship-certificates}]
      volumes: [{name: serving, secret: {secretName: serving}}]
---
apiVersion: v1
kind: Secret
metadata: {name: serving, namespace: system}
`)
	write(t, p, "cmd/rotator.go", rotator)
	p.edit(t, "cmd/main.go", "	manager, err := ctrl.NewManager(", "	if err := rotate(); err != nil {\n		return err\n	}\n	manager, err := ctrl.NewManager(",
		"webhook.Options{Port: port}", "webhook.Options{Port: port, CertDir: certificates}")
	p.edit(t, controllerFile, "// +kubebuilder:rbac:groups=coordination.k8s.io", "// +kubebuilder:rbac:groups=\"\",resources=secrets,verbs=get;update\n"+
		"// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=get;update\n// +kubebuilder:rbac:groups=coordination.k8s.io",
		`"ahoy, "`, `"hello, "`)
	if said, code := p.up(t); code != 0 {
		t.Fatal(said)
	}
	check := func(name string) {
		t.Helper()
		if round := p.next(t); round.Problem != nil || round.State != "reconciling" {
			t.Fatalf("got %+v, %+v", round, round.Problem)
		}
		server := p.server(t)
		works(t, server, name)
		if err := server.Create(t.Context(), ship("ghost", map[string]any{"crew": -1})); err == nil || !strings.Contains(err.Error(), "no ghost ships") {
			t.Errorf("the webhook says %v", err)
		}
	}
	p.start(t)
	check("first")
	p.edit(t, controllerFile, `"no ghost ships"`, `"no ghost ships here"`)
	check("restarted")
	// The next session has another certificate, and the operator still has its own.
	p.stop(t, os.Kill)
	p.start(t)
	check("second")
	if code := p.stop(t, os.Interrupt); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat("/etc/ship-certificates"); err == nil {
		t.Error("/etc/ship-certificates is on this machine")
	}
}
