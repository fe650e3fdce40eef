// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/opdock/opdock/controlplane/internal/pki"
	"github.com/opdock/opdock/controlplane/internal/state"
)

// serviceRange holds the cluster IPs of services; its first address is the API
// server's own.
const serviceRange = "10.96.0.0/16"

var serviceAddress = net.IPv4(10, 96, 0, 1)

// apiOptions are upstream's defaults and what makes one API server on loopback.
func (p *plane) apiOptions() (*options.ServerRunOptions, error) {
	pair, err := p.keys.CA.Server("kube-apiserver",
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceAddress})
	if err != nil {
		return nil, err
	}
	if err := p.writePair("apiserver", pair); err != nil {
		return nil, err
	}
	if pair, err = p.keys.FrontProxy.Client(frontProxyClient); err != nil {
		return nil, err
	}
	if err := p.writePair(frontProxyClient, pair); err != nil {
		return nil, err
	}

	o := options.NewServerRunOptions()
	_ = o.Flags() // some defaults are only set by adding the flags
	o.SecureServing.Listener = p.listener
	o.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
	o.SecureServing.BindPort = p.port()
	o.SecureServing.ServerCert.CertKey.CertFile = p.folder.Path("pki", "apiserver.crt")
	o.SecureServing.ServerCert.CertKey.KeyFile = p.folder.Path("pki", "apiserver.key")
	o.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	// The kubernetes Service has no endpoints: there is no pod network from
	// which they could be reached, and loopback is no valid endpoint address.
	o.EndpointReconcilerType = "none"
	o.ServiceClusterIPRanges = serviceRange
	o.AllowPrivileged = true
	o.Etcd.StorageConfig.Transport.ServerList = []string{p.etcd.Endpoint()}
	if p.options.History > 0 {
		// What was current when it compacted last is what it compacts next.
		o.Etcd.StorageConfig.CompactionInterval = p.options.History
	}
	o.Authorization.Modes = []string{"Node", "RBAC"}
	o.Authentication.BootstrapToken.Enable = true
	o.Authentication.ClientCert.ClientCA = p.folder.Path("pki", "ca.crt")
	o.Authentication.ServiceAccounts.Issuers = []string{"https://kubernetes.default.svc.cluster.local"}
	o.Authentication.ServiceAccounts.KeyFiles = []string{p.keys.ServiceAccountKeyFile}
	o.ServiceAccountSigningKeyFile = p.keys.ServiceAccountKeyFile
	// As kubeadm sets it up, so that extension API servers can be added.
	o.Authentication.RequestHeader.ClientCAFile = p.folder.Path("pki", "front-proxy-ca.crt")
	o.Authentication.RequestHeader.AllowedNames = []string{frontProxyClient}
	o.Authentication.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	o.Authentication.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	o.Authentication.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	o.ProxyClientCertFile = p.folder.Path("pki", frontProxyClient+".crt")
	o.ProxyClientKeyFile = p.folder.Path("pki", frontProxyClient+".key")
	o.Admission.GenericAdmission.EnablePlugins = append(slices.Clone(defaultPlugins), p.folder.Info.AdmissionPlugins...)
	return o, nil
}

const frontProxyClient = "front-proxy-client"

func (p *plane) writePair(name string, pair pki.Pair) error {
	if err := state.WriteFile(p.folder.Path("pki", name+".crt"), pair.CertPEM); err != nil {
		return err
	}
	return state.WriteFile(p.folder.Path("pki", name+".key"), pair.KeyPEM)
}

// writeKubeconfig writes the administrator's kubeconfig, with a new
// certificate at every start so that it does not run out.
func (p *plane) writeKubeconfig() error {
	pair, err := p.keys.CA.Client("kubernetes-admin", "system:masters")
	if err != nil {
		return err
	}
	name := "opdock-" + filepath.Base(p.folder.Dir)
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: p.server(), CertificateAuthorityData: p.keys.CA.CertPEM}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.CertPEM, ClientKeyData: pair.KeyPEM}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return state.WriteFile(p.folder.Path("kubeconfig"), data)
}
