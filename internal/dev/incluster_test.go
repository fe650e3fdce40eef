// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/opdock/opdock/internal/dev/mounts"
	"github.com/opdock/opdock/internal/project"
)

func kubeconfigOf(t *testing.T, cluster clientcmdapi.Cluster, user clientcmdapi.AuthInfo) []byte {
	t.Helper()
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": &cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": &user},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}}, CurrentContext: "c",
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestInClusterConfiguration(t *testing.T) {
	authority, token := []byte("authority"), clientcmdapi.AuthInfo{Token: "secret"}
	for name, test := range map[string]struct {
		cluster clientcmdapi.Cluster
		user    clientcmdapi.AuthInfo
		want    []string // variables; none if there is no configuration
	}{
		"token":       {clientcmdapi.Cluster{Server: "https://127.0.0.1:7443", CertificateAuthorityData: authority}, token, []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=7443"}},
		"IPv6":        {clientcmdapi.Cluster{Server: "https://[::1]:7443/", CertificateAuthorityData: authority}, token, []string{"KUBERNETES_SERVICE_HOST=::1", "KUBERNETES_SERVICE_PORT=7443"}},
		"no token":    {clientcmdapi.Cluster{Server: "https://127.0.0.1:7443", CertificateAuthorityData: authority}, clientcmdapi.AuthInfo{}, nil},
		"public CA":   {clientcmdapi.Cluster{Server: "https://127.0.0.1:7443"}, token, nil},
		"no port":     {clientcmdapi.Cluster{Server: "https://example.com", CertificateAuthorityData: authority}, token, nil},
		"path":        {clientcmdapi.Cluster{Server: "https://example.com:443/clusters/a", CertificateAuthorityData: authority}, token, nil},
		"without TLS": {clientcmdapi.Cluster{Server: "http://127.0.0.1:7443", CertificateAuthorityData: authority}, token, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := newInCluster(kubeconfigOf(t, test.cluster, test.user))
			if test.want == nil {
				if got != nil {
					t.Errorf("got %+v", got)
				}
				return
			}
			if got == nil || !slices.Equal(got.env, test.want) {
				t.Fatalf("got %+v", got)
			}
			const dir = "/var/run/secrets/kubernetes.io/serviceaccount/"
			if want := map[string]string{dir + "token": "secret", dir + "ca.crt": "authority"}; !maps.Equal(got.files, want) {
				t.Errorf("the files are %q", got.files)
			}
		})
	}
	if got := newInCluster([]byte("{")); got != nil {
		t.Errorf("of a broken kubeconfig: %+v", got)
	}
}

// An operator that reads only the in-cluster configuration ends at its first start, and finds one at its second.
func TestBecomePod(t *testing.T) {
	s := &Session{Options: Options{Project: &project.Project{Dir: t.TempDir()}, StateDir: t.TempDir()}}
	s.manifests.identity = &project.Identity{Namespace: "harbour", ServiceAccount: "captain"}
	s.certificates = &certificates{}
	kubeconfig := kubeconfigOf(t, clientcmdapi.Cluster{Server: "https://127.0.0.1:7443", CertificateAuthorityData: []byte("authority")}, clientcmdapi.AuthInfo{Token: "secret"})
	if err := writePrivate(s.KubeconfigPath(), kubeconfig); err != nil {
		t.Fatal(err)
	}
	s.process, _ = shell(t, "echo other trouble; exit 1")
	awaitEnd(t, s.process)
	if s.becomePod() {
		t.Error("an operator that ended for another reason gets an in-cluster configuration")
	}
	if got := lastValue(s.environment(), "KUBERNETES_SERVICE_HOST"); got != "" {
		t.Errorf("without one, the service address is %q", got)
	}
	s.process, _ = shell(t, "echo unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined; exit 1")
	awaitEnd(t, s.process)
	before, err := s.layOutFiles()
	if err != nil {
		t.Fatal(err)
	}
	if err := mounts.Check(before); err != nil {
		if s.becomePod() || s.inCluster != nil {
			t.Errorf("it gets an in-cluster configuration that it cannot see: %v", err)
		}
		return
	}
	if !s.becomePod() {
		t.Fatal("it gets no in-cluster configuration")
	}
	if s.becomePod() {
		t.Error("it gets one again, and would be restarted for ever")
	}
	list, err := s.layOutFiles()
	if err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	next, err := startProcess(processSpec{
		binary: "/bin/sh", dir: t.TempDir(), env: append(os.Environ(), s.environment()...), mounts: &list,
		args: []string{"-c", `cd /var/run/secrets/kubernetes.io/serviceaccount && echo "$(cat namespace token ca.crt) $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"`},
		line: func(line string) { output.WriteString(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, next)
	if got := output.String(); got != "harboursecretauthority 127.0.0.1:7443" {
		t.Errorf("it finds %q", got)
	}
}
