// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/dev/mounts"
	"github.com/opdock/opdock/internal/testenv"
)

// decoy is an API server that only counts who connects to it. It never answers.
type decoy struct {
	server     string
	kubeconfig string
	connected  atomic.Int32
}

// newDecoy makes it the cluster of the kubeconfig in a home directory.
func newDecoy(t *testing.T, home string) *decoy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	d := &decoy{server: "https://" + listener.Addr().String(), kubeconfig: filepath.Join(home, ".kube", "config")}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			defer connection.Close() // with the listener
			d.connected.Add(1)
		}
	}()
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: production
contexts: [{name: production, context: {cluster: production, user: me}}]
clusters: [{name: production, cluster: {server: "%s"}}]
users: [{name: me, user: {token: secret}}]
`, d.server)
	testenv.WriteFile(t, d.kubeconfig, content)
	return d
}

// TestHardCodedKubeconfig has an operator that reads the kubeconfig in the home directory, whatever it is told otherwise.
func TestHardCodedKubeconfig(t *testing.T) {
	p := newProject(t, "plain")
	home := t.TempDir()
	other := newDecoy(t, home)
	p.env = []string{"HOME=" + home}
	const chosen, hardCoded = `clientcmd.BuildConfigFromFlags("", *kubeconfig)`, `clientcmd.BuildConfigFromFlags("", os.Getenv("HOME")+"/.kube/config")`
	p.edit(t, "main.go", chosen, hardCoded, `kubeconfig := flag.String`, `_ = flag.String`, "\t\"log\"\n", "\t\"log\"\n\t\"os\"\n")
	p.start(t, "--samples")
	if round := p.good(t, "build", "apply", "restart", "samples"); round.State != "reconciling" {
		t.Errorf("it is %s", round.State)
	}
	server := p.server(t)
	testenv.Eventually(t, "the buoy is red", func() error {
		buoy, err := get(t.Context(), server, schema.GroupVersionKind{Group: "plain.example.com", Version: "v1", Kind: "Buoy"}, "sample")
		if err == nil && buoy.GetAnnotations()["plain.example.com/colour"] != "red" {
			return fmt.Errorf("it has %v", buoy.GetAnnotations())
		}
		return err
	})
	if count := other.connected.Load(); count != 0 {
		t.Errorf("the operator has connected to the user's cluster %d times", count)
	}
	if runtime.GOOS != "linux" {
		return
	}
	// One that goes around the home directory sees its own kubeconfig there as well, where the kernel allows that.
	const around = `os.Getenv("HOME")+"/.kube/config"`
	p.edit(t, "main.go", around, fmt.Sprintf("%q+os.Getenv(\"NOTHING\")", other.kubeconfig), `"red"`, `"green"`)
	if mounts.Check(mounts.List{}) == nil {
		if round := p.good(t, "build", "restart"); round.State != "reconciling" {
			t.Errorf("it is %s", round.State)
		}
		if count := other.connected.Load(); count != 0 {
			t.Errorf("the operator has connected to the user's cluster %d times", count)
		}
	} else {
		p.next(t)
	}
	// One that finds another way is at least noticed.
	p.edit(t, "main.go", "	client := dynamic.", fmt.Sprintf("	config.Host = %q\n	client := dynamic.", other.server))
	p.next(t)
	testenv.Eventually(t, "it is noticed", func() error {
		if !strings.Contains(p.said.String(), other.server+`, which is cluster "production" of your own kubeconfig`) {
			return errors.New("it is not")
		}
		return nil
	})
}
