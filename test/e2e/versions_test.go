// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

// served returns the group versions that a cluster serves.
func served(t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	groups := must(clientFor(t, c.Config()).Discovery().ServerGroups())(t)
	var all []string
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			all = append(all, version.GroupVersion)
		}
	}
	return all
}

// TestKubernetesVersions starts each version that can be emulated, asks it what it is, and rolls out a Deployment.
func TestKubernetesVersions(t *testing.T) {
	testenv.ControlPlane(t)
	own := version.MustParseSemantic(cluster.KubernetesVersion)
	for back := range uint(4) {
		minor := own.SubtractMinor(back)
		name := version.MajorMinor(minor.Major(), minor.Minor()).String()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, cluster.Options{Kubernetes: name})
			client := clientFor(t, c.Config())
			info := must(client.Discovery().ServerVersion())(t)
			parsed := must(version.ParseSemantic(info.GitVersion))(t)
			if parsed.Minor() != minor.Minor() || info.Minor != version.Itoa(minor.Minor()) {
				t.Errorf("/version is %+v", info)
			}
			if emulated := strings.Contains(info.GitVersion, "emulated"); emulated != (back > 0) {
				t.Errorf("%s says whether it is emulated: %v", info.GitVersion, emulated)
			}
			node := must(client.CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{}))(t)
			if kubelet := must(version.ParseSemantic(node.Status.NodeInfo.KubeletVersion))(t); kubelet.Minor() != minor.Minor() {
				t.Errorf("the kubelet is %s", node.Status.NodeInfo.KubeletVersion)
			}
			w := &world{Interface: client, cluster: c, namespace: "default"}
			w.startDeployment(t, deployment("web", 2))
		})
	}
}

// TestOlderVersionServesLess shows that emulation is more than a number: an API that became stable later is not there.
func TestOlderVersionServesLess(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	older, newer := start(t, cluster.Options{Kubernetes: "1.33"}), start(t, cluster.Options{})
	// Dynamic resource allocation became stable in 1.34.
	const group = "resource.k8s.io/v1"
	if slices.Contains(served(t, older), group) || !slices.Contains(served(t, newer), group) {
		t.Errorf("1.33 serves %q,\n%s serves %q", served(t, older), cluster.KubernetesVersion, served(t, newer))
	}
}

func TestVersionIsKept(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	name := clusterName(t)
	minorOf := func(c *cluster.Cluster) string {
		return must(clientFor(t, c.Config()).Discovery().ServerVersion())(t).Minor
	}
	c := start(t, cluster.Options{Name: name, Kubernetes: "1.33"})
	if status := must(cluster.Find(name))(t); status.Emulated != "1.33" {
		t.Errorf("status: %+v", status)
	}
	fork := must(c.Fork(within(t), cluster.Options{}))(t)
	if got := minorOf(fork); got != "33" {
		t.Errorf("the fork is 1.%s", got)
	}
	try(t, fork.Stop())
	try(t, c.Stop())
	c = start(t, cluster.Options{Name: name})
	if got := minorOf(c); got != "33" {
		t.Errorf("after a restart it is 1.%s", got)
	}
	try(t, c.Stop())
	// The scheduler of 1.34 needs rights that the role of 1.33 does not have.
	c = start(t, cluster.Options{Name: name, Kubernetes: "1.34"})
	if got := minorOf(c); got != "34" {
		t.Errorf("after an upgrade it is 1.%s", got)
	}
	try(t, c.Stop())
	refuses(t, cluster.Options{Name: name, Kubernetes: "1.33"}, cluster.ReasonNewerState, "1.34", "1.33")
	refuses(t, cluster.Options{Name: name, Kubernetes: "1.99"}, cluster.ReasonBadOption, "1.99")
	refuses(t, cluster.Options{Kubernetes: "old"}, cluster.ReasonBadOption, "old")
}

// TestVersionOfAssets runs the suite for envtest on an older version, by one variable.
func TestVersionOfAssets(t *testing.T) {
	command := envtestSuite(t, "-test.v")
	command.Env = append(command.Env, "OPDOCK_KUBERNETES=1.34")
	passes(t, command)

	server := filepath.Join(must(cluster.Assets(testenv.ControlPlane(t)))(t), "kube-apiserver")
	wrong := exec.CommandContext(t.Context(), server)
	wrong.Env = append(os.Environ(), "OPDOCK_KUBERNETES=1.20")
	output, err := wrong.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "1.20") {
		t.Errorf("a version that is not there: %v\n%s", err, output)
	}
}
