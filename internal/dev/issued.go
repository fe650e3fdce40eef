// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// issued are the Secrets that cert-manager would make of the Certificates among the manifests, where it does not run. They hold
// the certificate of the session, which is good for this machine. A Secret that is among the manifests is taken from there.
func (c *certificates) issued(all []*unstructured.Unstructured) (secrets []*unstructured.Unstructured) {
	if c == nil {
		return nil
	}
	data := map[string]any{"ca.crt": string(c.authority)}
	for _, name := range []string{"tls.crt", "tls.key"} {
		content, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			return nil // without them, the operator reports the missing certificate
		}
		data[name] = string(content)
	}
	for _, object := range all {
		if kind := object.GroupVersionKind(); kind.Group != "cert-manager.io" || kind.Kind != "Certificate" {
			continue
		}
		name, _, _ := unstructured.NestedString(object.Object, "spec", "secretName")
		same := func(other *unstructured.Unstructured) bool {
			return other.GetKind() == "Secret" && other.GetName() == name && other.GetNamespace() == object.GetNamespace()
		}
		if name == "" || slices.ContainsFunc(all, same) || slices.ContainsFunc(secrets, same) {
			continue
		}
		secret := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "stringData": data,
		}}
		secret.SetName(name)
		secret.SetNamespace(object.GetNamespace())
		secret.SetAnnotations(map[string]string{standInAnnotation: "the certificate of this session of opdock dev"})
		secrets = append(secrets, secret.DeepCopy())
	}
	return secrets
}

// withIssued returns all manifests, and those Secrets.
func (s *Session) withIssued() []*unstructured.Unstructured {
	return slices.Concat(s.manifests.all, s.certificates.issued(s.manifests.all))
}
