// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrolplane "k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust"

	"github.com/opdock/opdock/controlplane/internal/pki"
)

// TestCertificatesAreNotWatched has what upstream makes of the flags. It starts everything that can reload itself.
func TestCertificatesAreNotWatched(t *testing.T) {
	pair, err := pki.SelfSigned("server", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := filepath.Join(t.TempDir(), "crt"), filepath.Join(t.TempDir(), "key")
	for path, text := range map[string][]byte{certificate: pair.CertPEM, key: pair.KeyPEM} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	authority := func() dynamiccertificates.CAContentProvider {
		provider, err := dynamiccertificates.NewDynamicCAContentFromFile("authority", certificate)
		if err != nil {
			t.Fatal(err)
		}
		return provider
	}
	serving, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	config := &app.Config{KubeAPIs: &kubecontrolplane.Config{ControlPlane: controlplaneapiserver.Config{
		Generic: &genericapiserver.Config{SecureServing: &genericapiserver.SecureServingInfo{
			Cert: serving, ClientCA: dynamiccertificates.NewUnionCAContentProvider(authority(), authority()),
		}},
		Extra: controlplaneapiserver.Extra{ClusterAuthenticationInfo: clusterauthenticationtrust.ClusterAuthenticationInfo{ClientCA: authority()}},
	}}}
	before := config.KubeAPIs.ControlPlane.Generic.SecureServing.ClientCA.CurrentCABundleContent()
	if err := stopWatchingCertificates(config); err != nil {
		t.Fatal(err)
	}
	secure := config.KubeAPIs.ControlPlane.Generic.SecureServing
	trusted := config.KubeAPIs.ControlPlane.ClusterAuthenticationInfo
	for name, provider := range map[string]any{"serving": secure.Cert, "clients": secure.ClientCA, "trusted": trusted.ClientCA} {
		if _, reloads := provider.(dynamiccertificates.ControllerRunner); reloads {
			t.Errorf("%s: it watches its file", name)
		}
	}
	if trusted.RequestHeaderCA != nil {
		t.Error("there is an authority that was not configured")
	}
	if after := secure.ClientCA.CurrentCABundleContent(); !bytes.Equal(after, before) {
		t.Errorf("authorities of clients: got\n%s\nwant\n%s", after, before)
	}
	if got, _ := secure.Cert.CurrentCertKeyContent(); !bytes.Equal(got, pair.CertPEM) {
		t.Errorf("serving certificate: got\n%s", got)
	}
}
