// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

// suite is the test binary of package envtest, built once.
var suite = sync.OnceValues(func() (string, error) {
	path := filepath.Join(cluster.Home(), "bin", "envtest.test")
	arguments := []string{"test", "-c", "-o", path}
	if withRaceDetector() {
		// Then everything it needs is compiled that way already.
		arguments = append(arguments, "-race")
	}
	output, err := exec.Command("go", append(arguments, "github.com/opdock/opdock/test/envtest")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the envtest suite: %w\n%s", err, output)
	}
	return path, nil
})

func withRaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, setting := range info.Settings {
		if setting.Key == "-race" {
			return setting.Value == "true"
		}
	}
	return false
}

// envtestSuite is the suite as a user runs it: with KUBEBUILDER_ASSETS=$(opdock assets), in its own folder.
func envtestSuite(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	u := newCLI(t)
	assets := strings.TrimSpace(u.ok(t, "assets"))
	command := exec.CommandContext(within(t), must(suite())(t), arguments...)
	command.Dir = filepath.Join("..", "envtest")
	// Its own place for what envtest leaves behind when it is killed.
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, "OPDOCK_CONTROLLERS=", "TMPDIR="+t.TempDir())
	return command
}

// passes runs the suite and looks at the names of its tests, so that one that does nothing does not count.
func passes(t *testing.T, command *exec.Cmd) {
	t.Helper()
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("the suite fails: %v\n%s", err, output)
	}
	for _, name := range []string{"Deployment", "OwnedObjects", "Namespace", "Reconciler", "Webhook", "Kubectl", "UserWithoutRights"} {
		if !bytes.Contains(output, []byte("--- PASS: Test"+name)) {
			t.Errorf("%s has not run:\n%s", name, output)
		}
	}
}

// TestEnvtest runs the suite on an API server alone, where it checks that no controller does anything.
func TestEnvtest(t *testing.T) {
	passes(t, envtestSuite(t, "-test.v"))
}

// TestEnvtestWithControllers runs the same binary with the one variable that makes it a whole cluster: a
// Deployment becomes Available, owned objects are collected, and a namespace goes.
func TestEnvtestWithControllers(t *testing.T) {
	command := envtestSuite(t, "-test.v")
	command.Env = append(command.Env, "OPDOCK_CONTROLLERS=1")
	passes(t, command)
}

// TestAssetsAreTheUpstreamPrograms asks each for its version and its help, as test frameworks do to see what
// they have before them.
func TestAssetsAreTheUpstreamPrograms(t *testing.T) {
	u := newCLI(t)
	assets := strings.TrimSpace(u.ok(t, "assets"))
	if want := must(cluster.Assets(testenv.ControlPlane(t)))(t); assets != want {
		t.Errorf("the command line says %s, and package cluster %s", assets, want)
	}
	for _, test := range []struct{ program, arguments, says string }{
		{"etcd", "--version", "etcd Version: 3."},
		{"etcd", "--help", "--listen-client-urls"},
		{"kube-apiserver", "--version", "Kubernetes " + cluster.KubernetesVersion},
		{"kube-apiserver", "--help", "--etcd-servers"},
		{"kubectl", "version --client", "Client Version: " + cluster.KubernetesVersion},
	} {
		output, err := exec.CommandContext(t.Context(), filepath.Join(assets, test.program), strings.Fields(test.arguments)...).CombinedOutput()
		if err != nil || !bytes.Contains(output, []byte(test.says)) {
			t.Errorf("%s %s: %v, and %q is not in:\n%s", test.program, test.arguments, err, test.says, output)
		}
	}
}

// TestAssetsKubectl uses kubectl by its name in the folder, without opdock in front of it.
func TestAssetsKubectl(t *testing.T) {
	w := newWorld(t)
	kubectl := filepath.Join(must(cluster.Assets(testenv.ControlPlane(t)))(t), "kubectl")
	output, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", w.cluster.Kubeconfig(), "get", "ns", w.namespace, "-o", "name").CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != "namespace/"+w.namespace {
		t.Errorf("kubectl get ns: %v\n%s", err, output)
	}
}
