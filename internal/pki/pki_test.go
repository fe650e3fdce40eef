// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func certificate(t *testing.T, pair Pair) *x509.Certificate {
	t.Helper()
	loaded, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Leaf
}

func TestCertificates(t *testing.T) {
	now := time.Now()
	ca, err := NewAuthority("test", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, ca.Pair))

	pair, err := ca.Client("jane", []string{"sailors"}, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	client := certificate(t, pair)
	if client.Subject.CommonName != "jane" || !slices.Equal(client.Subject.Organization, []string{"sailors"}) {
		t.Errorf("it is that of %v", client.Subject)
	}
	if pair, err = ca.Loopback(now, time.Hour); err != nil {
		t.Fatal(err)
	}
	server := certificate(t, pair)
	for name, one := range map[string]struct {
		certificate *x509.Certificate
		usage       x509.ExtKeyUsage
		host        string
		at          time.Time
		good        bool
	}{
		"a client":              {client, x509.ExtKeyUsageClientAuth, "", now, true},
		"a client that serves":  {client, x509.ExtKeyUsageServerAuth, "", now, false},
		"a client, too late":    {client, x509.ExtKeyUsageClientAuth, "", now.Add(2 * time.Hour), false},
		"a server":              {server, x509.ExtKeyUsageServerAuth, "localhost", now, true},
		"a server's address":    {server, x509.ExtKeyUsageServerAuth, "127.0.0.1", now, true},
		"a server's address 6":  {server, x509.ExtKeyUsageServerAuth, "::1", now, true},
		"a server elsewhere":    {server, x509.ExtKeyUsageServerAuth, "example.com", now, false},
		"a server, as a client": {server, x509.ExtKeyUsageClientAuth, "", now, false},
	} {
		_, err := one.certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{one.usage}, DNSName: one.host, CurrentTime: one.at})
		if (err == nil) != one.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLoadAuthority(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadAuthority(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is there: %v", err)
	}
	made, err := NewAuthority("test", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"ca.crt": made.Certificate, "ca.key": made.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := LoadAuthority(dir)
	if err != nil || !bytes.Equal(loaded.Certificate, made.Certificate) {
		t.Fatalf("got %v", err)
	}
	for name, content := range map[string][]byte{"ca.crt": made.Key, "ca.key": made.Certificate} {
		path := filepath.Join(dir, name)
		right, _ := os.ReadFile(path)
		for _, wrong := range [][]byte{content, []byte("garbage")} {
			if err := os.WriteFile(path, wrong, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := LoadAuthority(dir); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s is wrong: %v", name, err)
			}
		}
		if err := os.WriteFile(path, right, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
