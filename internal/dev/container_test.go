// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/testenv"
)

// crew are the manifests of an operator that is told much by its pod.
func crew(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return []*unstructured.Unstructured{
		object(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: crew-system}
spec:
  template:
    metadata: {labels: {app: crew}}
    spec:
      serviceAccountName: crew
      volumes:
      - {name: config, configMap: {name: config}}
      - {name: secret, secret: {secretName: login, items: [{key: password, path: deep/password.txt}, {key: gone, path: gone}]}}
      - {name: certificates, secret: {secretName: made-by-somebody-else}}
      - {name: scratch, emptyDir: {}}
      containers:
      - {name: proxy, env: [{name: NOT, value: ours}]}
      - name: manager
        image: crew:v1
        envFrom:
        - {configMapRef: {name: config}, prefix: FROM_}
        - {secretRef: {name: gone}}
        env:
        - {name: MODE, value: fast}
        - {name: EMPTY, value: ""}
        - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
        - {name: GONE, valueFrom: {secretKeyRef: {name: x, key: y}}}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}
        - {name: LEVEL, valueFrom: {configMapKeyRef: {name: config, key: level}}}
        - {name: DERIVED, value: "$(MODE)-er than $(UNKNOWN), $$(MODE)"}
        volumeMounts:
        - {name: config, mountPath: /etc/crew/}
        - {name: config, mountPath: /crew.yaml, subPath: level}
        - {name: secret, mountPath: /etc/login}
        - {name: certificates, mountPath: /certs}
        - {name: scratch, mountPath: /scratch}
`),
		object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: crew-system}, data: {level: debug}, binaryData: {raw: YWI=}}"),
		object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: elsewhere}, data: {level: wrong}}"),
		object(t, "{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: crew-system}, data: {user: bWU=}, stringData: {password: rum}}"),
	}
}

func TestEnvironmentOfTheManifests(t *testing.T) {
	identity := &project.Identity{Namespace: "crew-system", ServiceAccount: "crew"}
	got := environmentIn(crew(t), identity)
	want := []string{
		"FROM_level=debug", "FROM_raw=ab", "MODE=fast", "EMPTY=", "NAMESPACE=crew-system", "POD_NAME=manager", "POD_IP=127.0.0.1",
		"ACCOUNT=crew", "PASSWORD=rum", "LEVEL=debug", "DERIVED=fast-er than $(UNKNOWN), $(MODE)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := environmentIn(nil, identity); got != nil {
		t.Errorf("got %q", got)
	}
	merged := mergeEnvironments([]string{"MODE=slow", "HOME=/h"}, got, []string{"KUBECONFIG=/k"})
	if lastValue(merged, "MODE") != "slow" || lastValue(merged, "NAMESPACE") != "crew-system" || lastValue(merged, "KUBECONFIG") != "/k" {
		t.Errorf("merged: %q", merged)
	}
}

func TestMountedFiles(t *testing.T) {
	got := mountedFiles(crew(t), nil)
	want := map[string]string{"/etc/crew/level": "debug", "/etc/crew/raw": "ab", "/crew.yaml": "debug", "/etc/login/deep/password.txt": "rum"}
	if !maps.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := mountedFiles(nil, nil); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

func TestStandIn(t *testing.T) {
	c, found := containerIn(crew(t), nil)
	if !found || !c.readsOwnName() {
		t.Fatalf("found %t, and it may look itself up: %t", found, c.readsOwnName())
	}
	pod := c.standIn()
	account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
	if pod.GetName() != "manager" || pod.GetNamespace() != "crew-system" || account != "crew" || pod.GetLabels()["app"] != "crew" {
		t.Errorf("got %v", pod.Object)
	}
	silent, _ := containerIn([]*unstructured.Unstructured{object(t, "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a}]}}}}")}, nil)
	if silent.readsOwnName() || silent.namespace() != "default" {
		t.Error("it does not get its name")
	}
}

func TestTheHostnameIsTheNameOfThePod(t *testing.T) {
	dir := t.TempDir()
	testenv.WriteFile(t, filepath.Join(dir, "main.go"), `package main; var name = os.Getenv("HOSTNAME")`)
	testenv.WriteFile(t, filepath.Join(dir, "config", "default", "manager.yaml"), "{apiVersion: apps/v1, kind: Deployment, metadata: {name: boat}, spec: {template: {spec: {containers: [{name: manager}]}}}}")
	testenv.WriteFile(t, filepath.Join(dir, "config", "default", "kustomization.yaml"), "resources: [manager.yaml]")
	s := &Session{Options: Options{Project: &project.Project{Dir: dir}, Env: []string{"HOSTNAME=laptop"}}}
	found, err := s.readManifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.manifests = found
	if got := lastValue(s.environment(), "HOSTNAME"); got != "boat" {
		t.Errorf("HOSTNAME is %q", got)
	}
}

func TestLongHostnames(t *testing.T) {
	for pod, want := range map[string]string{"boat": "boat", strings.Repeat("a", 62) + "-controller": strings.Repeat("a", 62)} {
		if got := hostnameOf(pod); got != want {
			t.Errorf("%s: got %s", pod, got)
		}
	}
}

// Some operators read the path of a kubeconfig from a variable with another name.
func TestBothVariablesNameTheKubeconfig(t *testing.T) {
	s := &Session{Options: Options{StateDir: "/state"}}
	s.plan = plan{}
	env := s.environment()
	for _, name := range []string{"KUBECONFIG", "KUBE_CONFIG"} {
		if lastValue(env, name) != s.KubeconfigPath() {
			t.Errorf("%s is %q", name, lastValue(env, name))
		}
	}
}
