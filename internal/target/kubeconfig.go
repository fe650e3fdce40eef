// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/opdock/opdock/internal/hint"
)

const otherKubeconfig = "select another kubeconfig with --kubeconfig, or another context with --context"

// LoadKubeconfig reads a kubeconfig: the given one, or else the default of the environment.
func (o *Opener) LoadKubeconfig(path, contextName string) (*rest.Config, clientcmd.ClientConfig, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	if path == "" {
		rules.Precedence = filepath.SplitList(o.Getenv("KUBECONFIG"))
		if len(rules.Precedence) == 0 {
			rules.Precedence = []string{filepath.Join(o.Getenv("HOME"), ".kube", "config")}
		}
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: contextName})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, nil, hint.With(fmt.Errorf("the kubeconfig cannot be used: %w", err), otherKubeconfig)
	}
	// The server's priority and fairness limits requests; a second limit here would only slow down the start.
	config.QPS = -1
	return config, loaded, nil
}

// selfContained is a kubeconfig with one context and without references to other files.
func selfContained(loaded clientcmd.ClientConfig, contextName string) ([]byte, error) {
	raw, err := loaded.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if contextName != "" {
		raw.CurrentContext = contextName
	}
	if err := clientcmdapi.MinifyConfig(&raw); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(&raw); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return clientcmd.Write(raw)
}

// certificateKubeconfig gives a service account of one of Opdock's clusters a certificate.
func certificateKubeconfig(c Running) func(context.Context, string, string) ([]byte, error) {
	return func(_ context.Context, namespace, name string) ([]byte, error) {
		return c.KubeconfigAs("system:serviceaccount:" + namespace + ":" + name)
	}
}

// tokenLife is longer than a day's work; the API server may give less.
const tokenLife = 24 * time.Hour

// tokenKubeconfig returns a kubeconfig with a token of a service account, for clusters where no
// client certificate can be issued. The account must exist.
func tokenKubeconfig(ctx context.Context, config *rest.Config, namespace, name string) ([]byte, error) {
	server, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	seconds := int64(tokenLife.Seconds())
	token, err := server.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token for service account %s/%s: %w", namespace, name, err)
	}
	full := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(full); err != nil {
		return nil, fmt.Errorf("reading the certificates of the cluster: %w", err)
	}
	const here = "opdock-dev"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{here: {
			Server: full.Host + full.APIPath, CertificateAuthorityData: full.CAData,
			InsecureSkipTLSVerify: full.Insecure, TLSServerName: full.ServerName,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{here: {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{here: {Cluster: here, AuthInfo: here, Namespace: namespace}},
		CurrentContext: here,
	})
}
