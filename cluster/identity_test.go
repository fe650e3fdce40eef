// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// authorityOf makes a cluster that is nothing but a folder with an authority.
func authorityOf(t *testing.T, server string) *Cluster {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dev")
	if err := writeFakeAuthority(filepath.Join(dir, "pki")); err != nil {
		t.Fatal(err)
	}
	return &Cluster{name: "dev", dir: dir, config: &rest.Config{Host: server, BearerToken: "admin"}}
}

func certificateOf(t *testing.T, i *Identity) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(i.Config().CertData)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestAs(t *testing.T) {
	c := authorityOf(t, "https://127.0.0.1:1")
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(c.dir, "pki", "ca.crt"))
	if err != nil || !roots.AppendCertsFromPEM(ca) {
		t.Fatal("no authority", err)
	}
	cases := map[string]struct {
		user   string
		groups []string
		want   []string
	}{
		"user":                     {"jane", nil, nil},
		"user with groups":         {"jane", []string{"dev", "ops"}, []string{"dev", "ops"}},
		"service account":          {"system:serviceaccount:shop:cart", nil, []string{"system:serviceaccounts", "system:serviceaccounts:shop"}},
		"service account, limited": {"system:serviceaccount:shop:cart", []string{"only"}, []string{"only"}},
		"administrator":            {"root", []string{"system:masters"}, []string{"system:masters"}},
		"not only ASCII":           {"jörg", []string{"müller"}, []string{"müller"}},
		"long":                     {strings.Repeat("u", 200), nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			identity, err := c.As(tc.user, tc.groups...)
			if err != nil {
				t.Fatal(err)
			}
			cert := certificateOf(t, identity)
			slices.Sort(cert.Subject.Organization) // a set, in a certificate
			if cert.Subject.CommonName != tc.user || !slices.Equal(cert.Subject.Organization, tc.want) || !slices.Equal(identity.Groups(), tc.want) {
				t.Errorf("subject %v, groups %v", cert.Subject, identity.Groups())
			}
			options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
			for _, at := range []time.Duration{-4 * time.Minute, 0, 364 * 24 * time.Hour} {
				options.CurrentTime = time.Now().Add(at)
				if _, err := cert.Verify(options); err != nil {
					t.Errorf("in %v: %v", at, err)
				}
			}
			options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			if _, err := cert.Verify(options); err == nil {
				t.Error("it can be used for a server")
			}
			if cert.IsCA {
				t.Error("it can sign others")
			}
			if identity.Config().BearerToken != "" {
				t.Error("it carries the administrator's token")
			}
		})
	}
}

func TestAsRefuses(t *testing.T) {
	c := authorityOf(t, "https://127.0.0.1:1")
	for _, user := range []string{"", "system:serviceaccount:", "system:serviceaccount:shop", "system:serviceaccount::cart",
		"system:serviceaccount:shop:", "system:serviceaccount:a:b:c"} {
		if _, err := c.As(user); err == nil {
			t.Errorf("%q is not refused", user)
		}
	}
	if _, err := c.As("jane", "dev", ""); err == nil {
		t.Error("an empty group is not refused")
	}

	for file, content := range map[string]string{"ca.key": "garbage", "ca.crt": "garbage"} {
		broken := authorityOf(t, "https://127.0.0.1:1")
		path := filepath.Join(broken.dir, "pki", file)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := broken.As("jane"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("broken %s: %v", file, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := broken.As("jane"); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "check that the cluster is running") {
			t.Errorf("missing %s: %v", file, err)
		}
	}
	swapped := authorityOf(t, "https://127.0.0.1:1")
	cert, _ := os.ReadFile(filepath.Join(swapped.dir, "pki", "ca.crt"))
	if err := os.WriteFile(filepath.Join(swapped.dir, "pki", "ca.key"), cert, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := swapped.As("jane"); err == nil || !strings.Contains(err.Error(), "ca.key") {
		t.Errorf("a certificate for a key: %v", err)
	}
}

// A server that trusts the cluster's authority must see exactly the identity, both through the config
// and through the kubeconfig.
func TestIdentityReachesServer(t *testing.T) {
	c := authorityOf(t, "")
	ca, err := loadAuthority(filepath.Join(c.dir, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		_, _ = io.WriteString(w, subject.CommonName+" "+strings.Join(subject.Organization, ",")+r.Header.Get("Authorization"))
	}))
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(ca.Certificate) {
		t.Fatal("the authority has no certificate")
	}
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.StartTLS()
	defer server.Close()
	c.config.Host = server.URL

	identity, err := c.As("system:serviceaccount:shop:cart")
	if err != nil {
		t.Fatal(err)
	}
	// httptest has a certificate of its own.
	identity.config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	text, err := identity.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	fromText, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*rest.Config{"config": identity.Config(), "kubeconfig": fromText} {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(config.Host)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, _ := io.ReadAll(response.Body)
		response.Body.Close()
		client.CloseIdleConnections()
		if want := "system:serviceaccount:shop:cart system:serviceaccounts,system:serviceaccounts:shop"; string(got) != want {
			t.Errorf("%s: the server sees %q, want %q", name, got, want)
		}
	}

	parsed, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	context := parsed.Contexts[parsed.CurrentContext]
	if len(parsed.Contexts) != 1 || len(parsed.AuthInfos) != 1 || len(parsed.Clusters) != 1 || context == nil {
		t.Fatalf("kubeconfig:\n%s", text)
	}
	if context.Namespace != "shop" || context.Cluster != "opdock-dev" {
		t.Errorf("context is %+v", context)
	}
}
