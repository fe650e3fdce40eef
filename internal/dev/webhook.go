// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/pki"
)

const (
	// certificateLife is longer than any session.
	certificateLife = 30 * 24 * time.Hour
	// webhookPatience is how long an operator may take to serve its webhooks.
	webhookPatience = 30 * time.Second
	dialInterval    = 25 * time.Millisecond
	// takeInterval is at which of these intervals the certificates are looked for that the operator makes.
	takeInterval = 10
)

// certificates holds the serving certificate of webhooks, and the CA for the API server.
type certificates struct {
	// tempDir is a folder that, as TMPDIR, makes controller-runtime find the certificate by default.
	tempDir string
	// dir holds tls.crt and tls.key.
	dir string
	// authority is the CA's certificate, PEM encoded.
	authority []byte
}

// makeCertificates creates a CA and a serving certificate for this machine below the folder.
// The CA's key is discarded: it signs nothing else.
func makeCertificates(dir string, now time.Time) (*certificates, error) {
	c := &certificates{tempDir: filepath.Join(dir, "tmp")}
	c.dir = filepath.Join(c.tempDir, "k8s-webhook-server", "serving-certs")
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating a directory for certificates: %w", err)
	}
	authority, err := pki.NewAuthority("opdock dev", now, certificateLife)
	if err != nil {
		return nil, err
	}
	serving, err := authority.Loopback(now, certificateLife)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	c.authority = authority.Certificate
	for name, content := range map[string][]byte{"tls.crt": serving.Certificate, "tls.key": serving.Key} {
		if err := writePrivate(filepath.Join(c.dir, name), content); err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return c, nil
}

// writePrivate writes a file that only the user may read, even if a readable one exists.
func writePrivate(path string, content []byte) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// inventoriesPass is a match condition for all requests but those for inventories. A webhook for all ConfigMaps would otherwise refuse
// them whenever the operator does not run, and a session could neither begin after another was killed nor end.
var inventoriesPass = map[string]any{
	"name": "inventories-pass.opdock.dev",
	"expression": fmt.Sprintf("!(request.resource.group == '' && request.resource.resource == 'configmaps' && "+
		"has(request.namespace) && request.namespace == '%s' && has(request.name) && request.name.startsWith('%s'))",
		metav1.NamespaceSystem, apply.NamePrefix),
}

// localWebhooks changes a webhook configuration to an address of this machine instead of a
// Service.
func localWebhooks(configuration *unstructured.Unstructured, port int, authority []byte) *unstructured.Unstructured {
	local := configuration.DeepCopy()
	webhooks, _, _ := unstructured.NestedSlice(local.Object, "webhooks")
	for _, one := range webhooks {
		if webhook, ok := one.(map[string]any); ok {
			client, ok := webhook["clientConfig"].(map[string]any)
			if ok && redirect(client, port, authority) {
				conditions, _ := webhook["matchConditions"].([]any)
				webhook["matchConditions"] = append(conditions, maps.Clone(inventoriesPass))
			}
		}
	}
	local.Object["webhooks"] = webhooks
	return local
}

// localConversion does the same for a CRD whose versions a webhook converts.
func localConversion(definition *unstructured.Unstructured, port int, authority []byte) *unstructured.Unstructured {
	if !converts(definition) {
		return definition
	}
	local := definition.DeepCopy()
	client, found, _ := unstructured.NestedMap(local.Object, "spec", "conversion", "webhook", "clientConfig")
	if !found {
		return definition
	}
	redirect(client, port, authority)
	// The fields on the way are maps, or they would not have been found.
	_ = unstructured.SetNestedMap(local.Object, client, "spec", "conversion", "webhook", "clientConfig")
	return local
}

// withoutConversion is a CRD for an API server that cannot call this machine.
func withoutConversion(definition *unstructured.Unstructured) *unstructured.Unstructured {
	if !converts(definition) {
		return definition
	}
	local := definition.DeepCopy()
	_ = unstructured.SetNestedMap(local.Object, map[string]any{"strategy": "None"}, "spec", "conversion")
	return local
}

func converts(definition *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy")
	return strategy == "Webhook"
}

// redirect reports whether the client has been changed: it may intentionally have another address.
func redirect(client map[string]any, port int, authority []byte) bool {
	service, ok := client["service"].(map[string]any)
	if !ok {
		return false
	}
	path, _ := service["path"].(string)
	delete(client, "service")
	client["url"] = "https://" + net.JoinHostPort(loopback, strconv.Itoa(port)) + path
	client["caBundle"] = base64.StdEncoding.EncodeToString(authority)
	return true
}

// errNotTaken means that the operator does not serve with the certificate yet that was made for it.
var errNotTaken = errors.New("the operator does not serve with its new certificate yet")

// awaitWebhooks waits until the operator serves with a certificate that the API server accepts. If the manifests leave the webhooks
// out, the operator may not serve them: it does not wait long once the controllers run.
func (s *Session) awaitWebhooks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, webhookPatience)
	defer cancel()
	ticker := time.NewTicker(dialInterval)
	defer ticker.Stop()
	var failed error
	var workers <-chan struct{}
	var late <-chan time.Time
	if s.manifests.leavesWebhooksOut() {
		workers = s.process.ready.workersRun
	}
	for tick := 0; ; tick++ {
		err := s.certificates.dial(ctx, s.plan.webhookPort)
		if err == nil || tick%takeInterval == 0 {
			// One that makes its certificates has done so before it serves; what it serves with may still be the session's.
			before := s.certificates.authority
			if failed := s.takeCertificates(ctx); failed != nil || !bytes.Equal(before, s.certificates.authority) {
				err = cmp.Or(failed, errNotTaken)
			}
		}
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			failed = failureOf(failed, err) // later ones only say that the time is over
		}
		select {
		case <-ticker.C:
		case <-workers:
			workers, late = nil, time.After(silence)
		case <-s.process.done:
			return errEnded
		case <-late:
			return &notServedError{port: s.plan.webhookPort, err: failed}
		case <-ctx.Done():
			return &notServedError{port: s.plan.webhookPort, err: failed}
		}
	}
}

// failureOf returns what to report of two failures in a row. A connection that is attempted at the end of the wait times out, whatever
// the reason was before.
func failureOf(before, now error) error {
	if timeout := net.Error(nil); before != nil && errors.As(now, &timeout) && timeout.Timeout() {
		return before
	}
	return now
}

// dial connects to the webhooks as the API server will.
func (c *certificates) dial(ctx context.Context, port int) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.authority)
	dialer := &tls.Dialer{
		NetDialer: &net.Dialer{Timeout: time.Second},
		Config:    &tls.Config{RootCAs: roots, ServerName: loopback, MinVersion: tls.VersionTLS12},
	}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return connection.Close()
}

// notServedError is a port on which no webhooks are served with a certificate that the API server accepts.
type notServedError struct {
	port int
	err  error
}

func (e *notServedError) Error() string {
	return fmt.Sprintf("waiting for webhooks on port %d: %v", e.port, e.err)
}

func (e *notServedError) Unwrap() error { return e.err }

// unserved remembers an operator that does not serve the webhooks that its manifests leave out. Several processes can share it.
type unserved struct {
	mu   sync.Mutex
	by   string // what was started, as calledAs describes it
	said bool
}

// is reports whether this operator is known not to serve them.
func (u *unserved) is(by string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.said && u.by == by
}

// isKnown reports whether an operator is known not to serve them.
func (u *unserved) isKnown() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.said
}

// learn remembers the operator, and reports whether it is the first.
func (u *unserved) learn(by string) (first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	first = !u.said
	u.by, u.said = by, true
	return first
}

// calledAs describes the operator by what may turn its webhooks on or off.
func (s *Session) calledAs() string {
	return fmt.Sprintf("%x %q %q %q", s.builder.built, s.called.command, s.manifests.env, s.manifests.podFiles())
}
