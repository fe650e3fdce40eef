// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/pki"
)

// filledSecret is a Secret that the manifests have without content, and that the Deployment mounts: the operator makes its
// certificates itself, writes them there, and waits until the kubelet has brought them to its files.
type filledSecret struct {
	name string
	// dirs are where the container has it.
	dirs []string
}

// filledSecrets are in the operator's namespace.
func (m manifests) filledSecrets() (filled []filledSecret) {
	c, found := containerIn(m.all, m.identity)
	if !found || !m.serves() {
		return nil
	}
	volumes, _, _ := unstructured.NestedSlice(c.workload.Object, "spec", "template", "spec", "volumes")
	for _, volume := range mapsIn(volumes) {
		name, _, _ := unstructured.NestedString(volume, "secret", "secretName")
		if name == "" || !c.isEmptySecret(name) {
			continue
		}
		one := filledSecret{name: name}
		for _, mount := range mapsIn(c.fields["volumeMounts"]) {
			if at, _ := mount["mountPath"].(string); mount["name"] == volume["name"] && mount["subPath"] == nil && at != "" {
				one.dirs = append(one.dirs, path.Clean(at))
			}
		}
		if len(one.dirs) > 0 {
			filled = append(filled, one)
		}
	}
	return filled
}

// isEmptySecret says whether a Secret is among the manifests, and nothing is in it.
func (c container) isEmptySecret(name string) bool {
	return len(c.contentsOf("Secret", name)) == 0 && slices.ContainsFunc(c.manifests, func(object *unstructured.Unstructured) bool {
		return object.GroupVersionKind().Group == "" && object.GetKind() == "Secret" && object.GetName() == name &&
			(object.GetNamespace() == "" || object.GetNamespace() == c.namespace())
	})
}

// takeCertificates copies the Secret that the operator has filled to the operator's files, as the kubelet does. The certificate
// in the Secret is valid for the name of a Service, but the API server calls this machine. The key of the operator's authority is
// in the Secret too, so takeCertificates signs a certificate for both with it. Webhook configurations get that authority.
func (s *Session) takeCertificates(ctx context.Context) error {
	for _, one := range s.manifests.filledSecrets() {
		c, _ := containerIn(s.manifests.all, s.manifests.identity)
		secret := &corev1.Secret{}
		if err := s.applier.server.Get(ctx, client.ObjectKey{Namespace: c.namespace(), Name: one.name}, secret); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			return fmt.Errorf("reading Secret %s, which the operator fills with its certificates: %w", one.name, err)
		}
		if err := s.certificates.take(secret.Data, time.Now()); err != nil {
			return fmt.Errorf("using the certificates that the operator keeps in Secret %s: %w", one.name, err)
		}
	}
	return nil
}

// take makes the certificates of an operator those of the session.
func (c *certificates) take(data map[string][]byte, now time.Time) error {
	if len(data["ca.crt"]) == 0 || len(data["ca.key"]) == 0 || len(data["tls.crt"]) == 0 || string(data["ca.crt"]) == string(c.authority) {
		return nil
	}
	authority, err := pki.ParseAuthority(pki.Pair{Certificate: data["ca.crt"], Key: data["ca.key"]})
	if err != nil {
		return err
	}
	serving, err := authority.LoopbackAs(data["tls.crt"], now, certificateLife)
	if err != nil {
		return err
	}
	files := maps.Clone(data)
	files["tls.crt"], files["tls.key"] = serving.Certificate, serving.Key
	// The certificate comes last: an operator that watches it finds its key.
	for _, name := range slices.Concat(slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return name == "tls.crt" }), []string{"tls.crt"}) {
		// In place, because a new file is not noticed by those who watch the old one.
		if err := os.WriteFile(filepath.Join(c.dir, name), files[name], 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	c.authority = data["ca.crt"]
	return nil
}
