// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"slices"
	"strings"
	"testing"
)

func TestMissingRightsAreReadFromTheLog(t *testing.T) {
	var said []string
	r := newAdvice(func(text string) { said = append(said, text) })
	const services = `ERROR Failed to watch {"error": "services is forbidden: User \"system:serviceaccount:a:b\" cannot list resource \"services\" in API group \"\" at the cluster scope"}`
	r.read(services)
	r.read(services)
	r.read("INFO Starting EventSource")
	if len(said) > 0 {
		t.Fatalf("said within the round: %q", said)
	}
	r.roundIsOver()
	r.read(services)
	r.read(`deployments.apps "a" is forbidden: User "b" cannot create resource "deployments" in API group "apps" in the namespace "default"`)
	r.read(`W1116 reflector.go:561] k8s.io/client-go/informers/factory.go:160: failed to list *v1.Pod: unknown (get pods)`)
	r.read(`ERROR Failed to watch {"type": "*v1.Ship", "error": "failed to watch *v1.Ship: unknown (get ships.sea.example.com)"}`)
	r.read(`User "b" cannot patch resource "apps/status" in API group "kanggege.k8sio.com" in the namespace "default"`)
	r.read(`User \"b\" cannot list resource \"rafts\" in API group \"sea\" in the namespace \"c\": RBAC: clusterrole.rbac.authorization.k8s.io \"my-manager-role\" not found`)
	r.read(`User "b" cannot get resource "oars" in API group "sea" in the namespace "c": RBAC: [role.rbac.authorization.k8s.io "my-leader-role" not found, clusterrole.rbac.authorization.k8s.io "my-manager-role" not found]`)
	want := []string{
		`the operator is not allowed to list services; add to its role: // +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch`,
		"the operator is not allowed to create deployments; add to its role: // +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create",
		`the operator is not allowed to watch pods; add to its role: // +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch`,
		"the operator is not allowed to watch ships; add to its role: // +kubebuilder:rbac:groups=sea.example.com,resources=ships,verbs=get;list;watch",
		"the operator is not allowed to patch apps/status; add to its role: // +kubebuilder:rbac:groups=kanggege.k8sio.com,resources=apps/status,verbs=patch",
		"the operator is not allowed to list rafts; one of its bindings refers to role my-manager-role, which does not exist: check the names and prefixes in the kustomization",
		"the operator is not allowed to get oars; one of its bindings refers to role my-leader-role, which does not exist: check the names and prefixes in the kustomization",
	}
	if !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

func TestFailedCreationIsReadFromTheLog(t *testing.T) {
	var said []string
	a := newAdvice(func(text string) { said = append(said, text) })
	a.roundIsOver()
	const line = `ERROR Reconciler error {"name": "nginx-app", "error": "deployments.apps \"nginx-app\" already exists"}`
	for range invisible - 1 {
		a.read(line)
		a.read(`error: services "web" is there`)
	}
	// One attempt that is logged by several parts of an operator is one.
	for _, other := range []string{`07:50:44 level=warning msg="pods \"web-1\" already exists"`, `07:50:44 {"failed": "pods \"web-1\" already exists"}`, `07:50:45 {"event": "pods \"web-1\" already exists"}`} {
		a.read(other)
	}
	if len(said) > 0 {
		t.Fatalf("a cache may be late: %q", said)
	}
	for _, second := range []string{"45", "46", "47"} {
		a.read("07:50:" + second + ` ERROR "reconcileID": "dc5eb8a8-4e5a-4be4-8ae9-8c6a8ba8a8aa", "error": pods "web-1" already exists`)
	}
	if len(said) != 1 {
		t.Fatalf("the same at three times: %q", said)
	}
	said = nil
	for range invisible {
		a.read(line)
	}
	want := []string{`the operator keeps creating deployments.apps "nginx-app", which already exists; its cache may not contain the object: check whether main restricts the cache (ByObject) to a label that the object does not have`}
	if !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

func TestWhatOnlyPodsHaveIsReadFromTheLog(t *testing.T) {
	for line, want := range map[string]string{
		"panic: open /var/run/secrets/kubernetes.io/serviceaccount/namespace: no such file or directory":               "only pods have",
		`{"error":"open /etc/crew/config.yaml: no such file or directory"}`:                                            "they are at /state/pod/0",
		"open /home/me/notes: no such file or directory":                                                               "",
		"setup unable to get WatchNamespace: WATCH_NAMESPACE must be set":                                              "WATCH_NAMESPACE=… opdock dev",
		"environment variable OPERATOR_NAMESPACE is not set":                                                           "OPERATOR_NAMESPACE=… opdock dev",
		"INFO POD_NAME is manager":                                                                                     "",
		"unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined": "ctrl.GetConfig",
	} {
		var said string
		a := newAdvice(func(text string) { said = text })
		a.hidden = map[string]string{"/etc/crew/config.yaml": "/state/pod/0"}
		a.roundIsOver()
		a.read(line)
		if want == "" && said != "" || !strings.Contains(said, want) {
			t.Errorf("%s: it says %q", line, said)
		}
	}
}
