// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func clientConfigs(o *unstructured.Unstructured) (configs []map[string]any) {
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, one := range webhooks {
		config, _, _ := unstructured.NestedMap(one.(map[string]any), "clientConfig")
		configs = append(configs, config)
	}
	return configs
}

func TestWebhooksLeadHere(t *testing.T) {
	before := object(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks}
webhooks:
- name: a.example.com
  clientConfig: {service: {name: webhook-service, namespace: system, path: /validate-a}}
  matchConditions: [{name: own, expression: "true"}]
- name: b.example.com
  clientConfig: {url: "https://elsewhere.example.com/b"}
`)
	after := localWebhooks(before, 9443, []byte("CA"))
	configs := clientConfigs(after)
	if url := configs[0]["url"]; url != "https://127.0.0.1:9443/validate-a" {
		t.Errorf("the webhook leads to %v", url)
	}
	if _, still := configs[0]["service"]; still {
		t.Error("the service is still there, and the API server refuses both")
	}
	if bundle := configs[0]["caBundle"]; bundle != base64.StdEncoding.EncodeToString([]byte("CA")) {
		t.Errorf("the CA is %v", bundle)
	}
	if url := configs[1]["url"]; url != "https://elsewhere.example.com/b" || configs[1]["caBundle"] != nil {
		t.Errorf("a webhook of another project was changed: %v", configs[1])
	}
	webhooks, _, _ := unstructured.NestedSlice(after.Object, "webhooks")
	conditions, _ := webhooks[0].(map[string]any)["matchConditions"].([]any)
	if len(conditions) != 2 || webhooks[1].(map[string]any)["matchConditions"] != nil {
		t.Errorf("the conditions are %v and %v", conditions, webhooks[1])
	}
	if _, kept := clientConfigs(before)[0]["service"]; !kept {
		t.Error("the project's object was changed")
	}
}

func TestConversionLeadsHere(t *testing.T) {
	converting := object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: captains.crew.example.com}
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: webhook-service, namespace: system, path: /convert}}
`)
	url, _, _ := unstructured.NestedString(localConversion(converting, 7000, []byte("CA")).Object, "spec", "conversion", "webhook", "clientConfig", "url")
	if url != "https://127.0.0.1:7000/convert" {
		t.Errorf("conversion leads to %q", url)
	}
	if without := withoutConversion(converting); converts(without) {
		t.Error("a cluster elsewhere would call this machine")
	}
	plain := object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, spec: {group: y}}")
	if localConversion(plain, 1, nil) != plain || withoutConversion(plain) != plain {
		t.Error("a CRD without conversion was changed")
	}
}

func TestCertificates(t *testing.T) {
	made, err := makeCertificates(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		info, err := os.Stat(filepath.Join(made.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", name, mode)
		}
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(made.dir, "tls.crt"), filepath.Join(made.dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(made.authority) {
		t.Fatal("the authority is no certificate")
	}
	for _, name := range []string{"127.0.0.1", "localhost"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An operator that waits for a certificate of its own making runs, and serves no webhooks.
func TestWebhooksThatAreNotServed(t *testing.T) {
	err := &notServedError{port: 1, err: errors.New("connection refused")}
	told := &NotServedError{Err: err, Tail: []string{"starting", "waiting for the certificate"}}
	if text := told.Error(); !strings.HasPrefix(text, "waiting for webhooks on port 1: ") || !strings.HasSuffix(text, "; the end of the operator's log:\n  starting\n  waiting for the certificate") {
		t.Errorf("it says %q", text)
	}
}

func TestFailureToReport(t *testing.T) {
	refused := errors.New("connection refused")
	for _, test := range []struct{ before, now, want error }{
		{nil, refused, refused},
		{refused, os.ErrDeadlineExceeded, refused},
		{nil, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded},
		{os.ErrDeadlineExceeded, refused, refused},
	} {
		if got := failureOf(test.before, test.now); !errors.Is(got, test.want) {
			t.Errorf("after %v and %v, it reports %v", test.before, test.now, got)
		}
	}
}
