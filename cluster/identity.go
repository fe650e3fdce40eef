// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/opdock/opdock/internal/pki"
)

const (
	serviceAccountPrefix      = "system:serviceaccount:"
	serviceAccountsGroup      = "system:serviceaccounts"
	serviceAccountGroupPrefix = "system:serviceaccounts:"

	// identityLife is long enough for any dev cluster, and a kubeconfig that is lost ends with its cluster.
	identityLife = 365 * 24 * time.Hour
)

// Identity is a user that the cluster's API server recognizes by a client certificate.
type Identity struct {
	user      string
	groups    []string
	namespace string // of a service account; otherwise empty
	cluster   string // name of the cluster in the kubeconfig
	config    *rest.Config
}

// As returns exactly that user with exactly those groups. As for every user, the API server adds
// system:authenticated. The user need not exist, and has only the rights that RBAC grants.
//
// The user system:serviceaccount:NAMESPACE:NAME is a service account. Without groups, it gets the
// groups of a service account's token.
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
	pair, err := ca.Client(user, groups, time.Now(), identityLife)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate for %q: %w", user, err)
	}
	return &Identity{
		user: user, groups: groups, namespace: namespace,
		cluster: "opdock-" + filepath.Base(c.dir),
		config: withoutThrottle(&rest.Config{
			Host:            c.config.Host,
			TLSClientConfig: rest.TLSClientConfig{CAData: ca.Certificate, CertData: pair.Certificate, KeyData: pair.Key},
		}),
	}, nil
}

// User is the name the API server sees.
func (i *Identity) User() string { return i.user }

// Groups returns the groups in the certificate.
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
		return "", errors.New("the user name is empty; use a name such as jane or system:serviceaccount:NAMESPACE:NAME")
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
		return "", fmt.Errorf("%q is not a service account; use system:serviceaccount:NAMESPACE:NAME", user)
	}
	return namespace, nil
}

// loadAuthority reads the cluster's own authority, which the API server trusts for client certificates.
func loadAuthority(dir string) (*pki.Authority, error) {
	ca, err := pki.LoadAuthority(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("reading the certificate authority of the cluster: %w; check that the cluster is running", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("reading the certificate authority of the cluster: %w; run this as the user who started the cluster", err)
	case err != nil:
		return nil, fmt.Errorf("reading the certificate authority of the cluster: %w", err)
	}
	return ca, nil
}
