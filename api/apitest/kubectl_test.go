// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/cluster/clustertest"
)

// What users do with the kinds, with the program that they do it with.
func TestKubectl(t *testing.T) {
	realServer(t)
	namespace := clustertest.Namespace(t)
	assets, err := cluster.Assets(os.Getenv("OPDOCK_CONTROLPLANE"))
	if err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) string {
		t.Helper()
		args = append([]string{"--kubeconfig", clustertest.Shared(t).Kubeconfig(), "--cache-dir", t.TempDir(), "--namespace", namespace}, args...)
		out, err := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), args...).CombinedOutput()
		if err != nil {
			t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	contains := func(out, want string) {
		t.Helper()
		if !strings.Contains(out, want) {
			t.Errorf("kubectl's answer lacks %q:\n%s", want, out)
		}
	}

	contains(kubectl("apply", "--filename", crdFolder), "customresourcedefinition.apiextensions.k8s.io/appservices.app.example.com")
	contains(kubectl("apply", "--filename", filepath.Join(sampleFolder, "app_v1_appservice.yaml")), "appservice.app.example.com/nginx-app created")
	contains(kubectl("apply", "--filename", filepath.Join(sampleFolder, "app_v1alpha1_appservice.yaml")), "appservice.app.example.com/nginx-app")
	contains(kubectl("scale", "appsvc/nginx-app", "--replicas", "5"), "scaled")
	contains(kubectl("get", "opdock"), "nginx-app")
	contains(kubectl("get", "appservices", "--output", "jsonpath={.items[0].spec.size}"), "5")
	contains(kubectl("explain", "appservice.spec.ports.nodePort"), "nodePort exposes this port on every node")
}
