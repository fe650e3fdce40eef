// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	serviceAccountPrefix      = "system:serviceaccount:"
	serviceAccountsGroup      = "system:serviceaccounts"
	serviceAccountGroupPrefix = "system:serviceaccounts:"

	// identityLife is long enough for any dev cluster, and a kubeconfig that is lost ends with its cluster.
	identityLife = 365 * 24 * time.Hour
	// clockSkew is for clients in containers and virtual machines whose clock is behind.
	clockSkew = 5 * time.Minute
)

// Identity is a user that the cluster's API server knows by a client certificate.
type Identity struct {
	user      string
	groups    []string
	namespace string // of a service account; empty for others
	cluster   string // what the kubeconfig calls the cluster
	config    *rest.Config
}

// As returns exactly that user with exactly those groups (to which the API server adds
// system:authenticated, as it does for everybody). It need not exist and has no rights but those that
// RBAC gives it.
//
// The user system:serviceaccount:NAMESPACE:NAME is a service account. Without groups it gets those that
// a service account's token would have.
func (c *Cluster) As(user string, groups ...string) (*Identity, error) {
	namespace, err := checkIdentity(user, groups)
	if err != nil {
		return nil, err
	}
	groups = slices.Clone(groups)
	if namespace != "" && len(groups) == 0 {
		groups = []string{serviceAccountsGroup, serviceAccountGroupPrefix + namespace}
	}
	ca, err := loadAuthority(filepath.Join(c.dir, "pki"))
	if err != nil {
		return nil, fmt.Errorf("acting as %q on %s: %w", user, c.title(), err)
	}
	cert, key, err := ca.issue(user, groups, time.Now())
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %q: %w", user, err)
	}
	return &Identity{
		user: user, groups: groups, namespace: namespace,
		cluster: "opdock-" + filepath.Base(c.dir),
		config: withoutThrottle(&rest.Config{
			Host:            c.config.Host,
			TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem, CertData: cert, KeyData: key},
		}),
	}, nil
}

// User is the name the API server sees.
func (i *Identity) User() string { return i.user }

// Groups are those in the certificate.
func (i *Identity) Groups() []string { return slices.Clone(i.groups) }

// Config is how to talk to the cluster under this identity. Each call returns a copy.
func (i *Identity) Config() *rest.Config { return rest.CopyConfig(i.config) }

// Kubeconfig is a complete kubeconfig with this identity and no other. For a service account its
// namespace is the default.
func (i *Identity) Kubeconfig() ([]byte, error) {
	context := i.user + "@" + i.cluster
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			i.cluster: {Server: i.config.Host, CertificateAuthorityData: i.config.CAData},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			i.user: {ClientCertificateData: i.config.CertData, ClientKeyData: i.config.KeyData},
		},
		Contexts: map[string]*clientcmdapi.Context{
			context: {Cluster: i.cluster, AuthInfo: i.user, Namespace: i.namespace},
		},
		CurrentContext: context,
	})
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig for %q: %w", i.user, err)
	}
	return data, nil
}

// checkIdentity returns the namespace of a service account.
func checkIdentity(user string, groups []string) (namespace string, err error) {
	if user == "" {
		return "", errors.New("the user is empty; name one, for instance jane or system:serviceaccount:NAMESPACE:NAME")
	}
	if slices.Contains(groups, "") {
		return "", fmt.Errorf("one of the groups of %q is empty", user)
	}
	account, isAccount := strings.CutPrefix(user, serviceAccountPrefix)
	if !isAccount {
		return "", nil
	}
	namespace, name, _ := strings.Cut(account, ":")
	if namespace == "" || name == "" || strings.Contains(name, ":") {
		return "", fmt.Errorf("%q is not a service account; write system:serviceaccount:NAMESPACE:NAME", user)
	}
	return namespace, nil
}

// authority is the cluster's own, which the API server trusts for client certificates.
type authority struct {
	pem  []byte
	cert *x509.Certificate
	key  crypto.Signer
}

func loadAuthority(dir string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	certPEM, certDER, err := readPEM(certFile)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", certFile, err)
	}
	_, keyDER, err := readPEM(keyFile)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(keyDER)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", keyFile, err)
	}
	return &authority{pem: certPEM, cert: cert, key: key}, nil
}

func readPEM(path string) (text, der []byte, err error) {
	text, err = os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("reading the cluster's certificate authority: %w; is the cluster still running?", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, nil, fmt.Errorf("reading the cluster's certificate authority: %w; act as the user who started the cluster", err)
	case err != nil:
		return nil, nil, fmt.Errorf("reading the cluster's certificate authority: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, fmt.Errorf("reading the cluster's certificate authority: there is no PEM block in %s", path)
	}
	return text, block.Bytes, nil
}

func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

func (a *authority) issue(user string, groups []string, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	// Without a serial number x509 draws a random one.
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: user, Organization: groups},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(identityLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	certDER, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), nil
}
