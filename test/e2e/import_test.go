// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

const importedCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestCLIImport brings the objects of one cluster to another and looks whether they are the same, and stay.
func TestCLIImport(t *testing.T) {
	u := newCLI(t)
	u.ok(t, "up", "--quiet", "--name", "prod", "--nodes", "2")
	kubectl := func(name string, arguments ...string) string {
		t.Helper()
		return u.ok(t, append([]string{"kubectl", "--name", name}, arguments...)...)
	}
	crd := filepath.Join(t.TempDir(), "crd.yaml")
	try(t, os.WriteFile(crd, []byte(importedCRD), 0o600))
	kubectl("prod", "apply", "-f", crd)
	kubectl("prod", "wait", "--for=condition=Established", "crd/ships.sea.example.com")
	kubectl("prod", "create", "namespace", "shop")
	ship := filepath.Join(t.TempDir(), "ship.yaml")
	try(t, os.WriteFile(ship, []byte("apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: ada, namespace: shop}\nspec: {size: 3}\n"), 0o600))
	kubectl("prod", "apply", "-f", ship)
	kubectl("prod", "-n", "shop", "patch", "ship", "ada", "--subresource=status", "--type=merge", "-p", `{"status":{"afloat":true}}`)
	kubectl("prod", "-n", "shop", "create", "deployment", "web", "--image=web:1", "--replicas=3")
	kubectl("prod", "-n", "shop", "rollout", "status", "deployment/web", "--timeout=90s")
	kubectl("prod", "-n", "shop", "create", "secret", "generic", "password", "--from-literal=key=open-sesame")
	kubectl("prod", "create", "configmap", "elsewhere")

	kubeconfig := u.status(t, "prod").Kubeconfig
	_, messages, code := u.run(t, "import", "--kubeconfig", kubeconfig, "-n", "shop", "--name", "home")
	if code != 0 || !strings.Contains(messages, "Secrets have placeholders") {
		t.Fatalf("import: exit code %d\n%s", code, messages)
	}
	// The same objects: names, UIDs, owners, generations and status.
	const identity = `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.generation} {.metadata.ownerReferences[*].uid} {.status.podIP} {.status.afloat}{"\n"}{end}`
	get := func(name string) string {
		return kubectl(name, "-n", "shop", "get", "deployments,replicasets,pods,ships", "-o", identity)
	}
	if prod, home := get("prod"), get("home"); prod != home || strings.Count(home, "\n") != 6 {
		t.Errorf("in the source:\n%s\nafter the import:\n%s", prod, home)
	}
	if secret := kubectl("home", "-n", "shop", "get", "secret", "password", "-o", "jsonpath={.data.key}"); secret != "cmVkYWN0ZWQ=" {
		t.Errorf("the secret is %s", secret)
	}
	u.fails(t, "NotFound", "kubectl", "--name", "home", "get", "configmap", "elsewhere")
	// It is alive: the controllers work with what they found, and keep it.
	kubectl("home", "-n", "shop", "scale", "deployment/web", "--replicas=4")
	kubectl("home", "-n", "shop", "rollout", "status", "deployment/web", "--timeout=90s")
	for pod := range strings.FieldsSeq(kubectl("prod", "-n", "shop", "get", "pods", "-o", "name")) {
		kubectl("home", "-n", "shop", "get", pod)
	}
	kubectl("home", "-n", "shop", "delete", "deployment", "web")
	testenv.Eventually(t, "what it owned goes with it", func() bool {
		return strings.TrimSpace(kubectl("home", "-n", "shop", "get", "pods,replicasets", "-o", "name")) == ""
	})
	u.fails(t, "only be imported into a new one", "import", "--kubeconfig", kubeconfig, "--name", "home")

	// A user who may not list everything.
	kubectl("prod", "create", "clusterrole", "reader", "--verb=get,list", "--resource=configmaps,namespaces,nodes")
	kubectl("prod", "create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=jane")
	limited := filepath.Join(t.TempDir(), "jane.kubeconfig")
	try(t, os.WriteFile(limited, []byte(u.ok(t, "kubeconfig", "--name", "prod", "--as", "jane")), 0o600))
	testenv.Eventually(t, "the role counts", func() bool {
		_, _, code := u.run(t, "kubectl", "--name", "prod", "--as", "jane", "get", "configmaps")
		return code == 0
	})
	u.fails(t, "secrets", "import", "--kubeconfig", limited, "--name", "limited")
	u.fails(t, "--skip-forbidden", "import", "--kubeconfig", limited, "--name", "limited")
	u.ok(t, "import", "--kubeconfig", limited, "--name", "limited", "--skip-forbidden")
	u.ok(t, "kubectl", "--name", "limited", "get", "configmap", "elsewhere")

	// A dump of it.
	dump := filepath.Join(t.TempDir(), "dump.yaml")
	try(t, os.WriteFile(dump, []byte(kubectl("prod", "-n", "shop", "get", "deployments,replicasets,pods", "-o", "yaml")), 0o600))
	u.ok(t, "import", "-f", dump, "--name", "dumped", "--quiet")
	if pods := kubectl("dumped", "-n", "shop", "get", "pods", "-o", "name"); strings.Count(pods, "\n") != 3 {
		t.Errorf("from the dump came\n%s", pods)
	}
	u.fails(t, "no such file", "import", "-f", dump+"-missing", "--name", "another")
	u.fails(t, `no namespace "typo"`, "import", "--kubeconfig", kubeconfig, "-n", "typo", "--name", "another")

	// A list as the API serves it, and manifests that no API server has stored.
	folder := testenv.Dir(t, map[string]string{
		"deployments.json": kubectl("prod", "get", "--raw", "/apis/apps/v1/namespaces/shop/deployments"),
		"manifests.yaml":   importedCRD + "---\n{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: eva}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}\n",
	})
	u.ok(t, "import", "-f", folder, "--name", "manifests", "--quiet")
	kubectl("manifests", "-n", "default", "get", "ship/eva", "configmap/plain")
	kubectl("manifests", "-n", "shop", "rollout", "status", "deployment/web", "--timeout=90s")
}
