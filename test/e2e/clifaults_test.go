// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/opdock/opdock/cluster"
)

func TestCLITwoUpsAtOnce(t *testing.T) {
	u := newCLI(t)
	var codes [2]int
	var messages [2]string
	var racing sync.WaitGroup
	for i := range codes {
		racing.Go(func() {
			out, progress, code := u.run(t, "up")
			messages[i], codes[i] = progress+out, code
		})
	}
	racing.Wait()
	// The second waits for the first, and finds that there is nothing left to do.
	if codes != [2]int{} || !strings.Contains(messages[0]+messages[1], "already running") {
		t.Errorf("exit codes %v; they said:\n%s\n%s", codes, messages[0], messages[1])
	}
	u.ok(t, "kubectl", "get", "nodes")
}

func TestCLIPortTaken(t *testing.T) {
	u := newCLI(t)
	port, _ := occupy(t)
	u.fails(t, strconv.Itoa(port), "up", "--port", strconv.Itoa(port))
	if s := u.status(t, "dock"); s.State != cluster.NeverStarted {
		t.Errorf("after that: %+v", s)
	}
}

func TestCLITimeout(t *testing.T) {
	u := newCLI(t)
	u.fails(t, "was not ready after 1ms", "up", "--timeout", "1ms")
	if s := u.status(t, "dock"); s.State == cluster.Alive {
		t.Errorf("after that: %+v", s)
	}
}

// TestCLIWithoutAnything is a machine with neither a control plane nor Go.
func TestCLIWithoutAnything(t *testing.T) {
	u := newCLI(t)
	// Alone in a folder, because a control plane beside it would be found.
	alone := filepath.Join(t.TempDir(), "opdock")
	source := must(os.Open(u.binary))(t)
	defer source.Close()
	target := must(os.OpenFile(alone, os.O_CREATE|os.O_WRONLY, 0o700))(t)
	must(io.Copy(target, source))(t)
	try(t, target.Close())
	u.binary = alone
	u.env = append(u.env, "PATH=", "OPDOCK_CONTROLPLANE=", "XDG_CACHE_HOME="+t.TempDir())
	u.fails(t, "Go is not installed to build it", "up")
	u.fails(t, "OPDOCK_CONTROLPLANE", "up")
	u.fails(t, "Go is not installed to build it", "assets")
}

// TestCLIKubectlAlone is a machine that has no kubectl and nothing else either.
func TestCLIKubectlAlone(t *testing.T) {
	u := newCLI(t)
	u.ok(t, "up")
	u.env = append(u.env, "PATH=", "HOME="+t.TempDir())
	if out := u.ok(t, "kubectl", "get", "nodes", "-o", "name"); strings.TrimSpace(out) != "node/node-0" {
		t.Errorf("kubectl get nodes: %s", out)
	}
	if out := u.ok(t, "kubectl", "version"); !strings.Contains(out, "Server Version: "+cluster.KubernetesVersion) {
		t.Errorf("kubectl version: %s", out)
	}
	u.ok(t, "kubectl", "run", "web", "--image=app:1")
	u.ok(t, "kubectl", "wait", "--for=condition=Ready", "pod/web", "--timeout=90s")
	if out := u.ok(t, "kubectl", "logs", "web"); !strings.Contains(out, "is simulated") {
		t.Errorf("kubectl logs: %s", out)
	}
	if out := u.ok(t, "kubectl", "api-resources", "-o", "name"); !strings.Contains(out, "deployments.apps") {
		t.Errorf("kubectl api-resources: %s", out)
	}
}
