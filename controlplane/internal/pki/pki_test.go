// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func load(t *testing.T) (*Set, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	if err := Create(dir, true); err != nil {
		t.Fatal(err)
	}
	set, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return set, dir
}

func parse(t *testing.T, certPEM []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func roots(authority *Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.CertPEM)
	return pool
}

func TestSetIsKept(t *testing.T) {
	first, dir := load(t)
	if err := Create(dir, false); err != nil {
		t.Fatal(err)
	}
	second, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(first.CA.CertPEM) != string(second.CA.CertPEM) || string(first.FrontProxy.CertPEM) != string(second.FrontProxy.CertPEM) {
		t.Error("a second load made new authorities")
	}
	if string(first.CA.CertPEM) == string(first.FrontProxy.CertPEM) {
		t.Error("any client could pose as the front proxy")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", entry.Name(), info.Mode(), err)
		}
	}
}

func TestDamageIsNoticed(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"certificate lost": func(dir string) error { return os.Remove(filepath.Join(dir, "ca.crt")) },
		"key lost":         func(dir string) error { return os.Remove(filepath.Join(dir, "ca.key")) },
		"key garbled":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "ca.key"), []byte("x"), 0o600) },
		"tokens' key lost": func(dir string) error { return os.Remove(filepath.Join(dir, "sa.key")) },
		"all lost":         os.RemoveAll,
		"keys mixed up": func(dir string) error {
			return os.Rename(filepath.Join(dir, "front-proxy-ca.key"), filepath.Join(dir, "ca.key"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, dir := load(t)
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir); err == nil {
				t.Error("it loads")
			}
		})
	}
}

func TestUnfinishedSetIsRecreated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := os.MkdirAll(dir+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir+".new", "ca.key"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(dir, false); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err != nil {
		t.Error(err)
	}
}

func TestIssuedCertificates(t *testing.T) {
	set, _ := load(t)
	client, err := set.CA.Client("alice", "developers", "admins")
	if err != nil {
		t.Fatal(err)
	}
	server, err := set.CA.Server("api", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range []Pair{client, server} {
		if _, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM); err != nil {
			t.Error(err)
		}
	}

	cert := parse(t, client.CertPEM)
	groups := slices.Sorted(slices.Values(cert.Subject.Organization))
	if cert.Subject.CommonName != "alice" || !slices.Equal(groups, []string{"admins", "developers"}) {
		t.Errorf("the client is %v", cert.Subject)
	}
	asClient := x509.VerifyOptions{Roots: roots(set.CA), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := cert.Verify(asClient); err != nil {
		t.Error(err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots(set.FrontProxy), KeyUsages: asClient.KeyUsages}); err == nil {
		t.Error("the front proxy's authority vouches for a client")
	}
	if _, err := parse(t, server.CertPEM).Verify(asClient); err == nil {
		t.Error("the server's certificate passes as a client's")
	}
	for _, name := range []string{"localhost", "127.0.0.1"} {
		if _, err := parse(t, server.CertPEM).Verify(x509.VerifyOptions{Roots: roots(set.CA), DNSName: name}); err != nil {
			t.Error(err)
		}
	}
}

func TestSelfSigned(t *testing.T) {
	pair, err := SelfSigned("loopback", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pair.CertPEM)
	if _, err := parse(t, pair.CertPEM).Verify(x509.VerifyOptions{Roots: pool, DNSName: "loopback"}); err != nil {
		t.Error(err)
	}
}
