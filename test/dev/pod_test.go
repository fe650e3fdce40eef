// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/dev/mounts"
	"github.com/opdock/opdock/internal/testenv"
)

const lighthouses = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lighthouses.coast.example.com}
spec:
  group: coast.example.com
  names: {kind: Lighthouse, plural: lighthouses, singular: lighthouse, listKind: LighthouseList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// TestInPod has an operator that expects to be in its pod, and a kind of others whose CRD is not part of the manifests. It
// watches only its own namespace.
func TestInPod(t *testing.T) {
	if err := mounts.Check(mounts.List{}); err != nil {
		t.Skipf("this system does not let an operator see other files: %v", err)
	}
	p := newProject(t, "ship")
	p.edit(t, "config/manager/manager.yaml", "        image: controller:latest\n", `        image: controller:latest
        env:
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: WATCH_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: COLOUR, valueFrom: {configMapKeyRef: {name: settings, key: colour}}}
        volumeMounts: [{name: settings, mountPath: /etc/ship}]
      volumes: [{name: settings, configMap: {name: settings}}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: system
data: {colour: blue}
`)
	write(t, p, "config/crd/thirdparty/lighthouses.yaml", lighthouses)
	p.edit(t, controllerFile, "// +kubebuilder:rbac:groups=coordination.k8s.io",
		"// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=get\n// +kubebuilder:rbac:groups=coast.example.com,resources=lighthouses,verbs=get;list;watch\n// +kubebuilder:rbac:groups=coordination.k8s.io",
		"	return ctrl.NewControllerManagedBy(manager).For(&v1.Ship{}).Complete(", `	lighthouse := &unstructured.Unstructured{}
	lighthouse.SetAPIVersion("coast.example.com/v1")
	lighthouse.SetKind("Lighthouse")
	return ctrl.NewControllerManagedBy(manager).For(&v1.Ship{}).Watches(lighthouse, &handler.EnqueueRequestForObject{}).Complete(`,
		"	ctrl \"sigs.k8s.io/controller-runtime\"\n", "	\"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured\"\n	ctrl \"sigs.k8s.io/controller-runtime\"\n",
		"	\"sigs.k8s.io/controller-runtime/pkg/webhook/admission\"\n", "	\"sigs.k8s.io/controller-runtime/pkg/handler\"\n	\"sigs.k8s.io/controller-runtime/pkg/webhook/admission\"\n")
	p.edit(t, "cmd/main.go", "	if err := controller.Setup(manager); err != nil {", `	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return err
	}
	colour, err := os.ReadFile("/etc/ship/colour")
	if err != nil {
		return err
	}
	self := &corev1.Pod{}
	if err := manager.GetAPIReader().Get(context.Background(), client.ObjectKey{Namespace: string(namespace), Name: os.Getenv("POD_NAME")}, self); err != nil {
		return err
	}
	fmt.Println("in its pod:", string(namespace), string(colour)+" and", os.Getenv("COLOUR")+",", self.Spec.Containers[0].Image)
	if err := controller.Setup(manager); err != nil {`,
		"import (\n", "import (\n	\"context\"\n", "	\"k8s.io/apimachinery/pkg/runtime\"\n", "	corev1 \"k8s.io/api/core/v1\"\n	\"k8s.io/apimachinery/pkg/runtime\"\n",
		"	\"sigs.k8s.io/controller-runtime/pkg/log/zap\"\n", "	\"sigs.k8s.io/controller-runtime/pkg/client\"\n	\"sigs.k8s.io/controller-runtime/pkg/log/zap\"\n",
		"Scheme: scheme, Metrics:", "Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{os.Getenv(\"WATCH_NAMESPACE\"): {}}}, Scheme: scheme, Metrics:",
		"	\"sigs.k8s.io/controller-runtime/pkg/metrics/server\"\n", "	\"sigs.k8s.io/controller-runtime/pkg/cache\"\n	\"sigs.k8s.io/controller-runtime/pkg/metrics/server\"\n")
	p.start(t, "--samples")
	if round := p.next(t); round.Problem != nil || round.State != "reconciling" {
		t.Fatalf("got %+v, %+v", round, round.Problem)
	}
	if log := p.log(); !strings.Contains(log, "in its pod: ship-system blue and blue, controller:latest") {
		t.Errorf("its log is %s", log)
	}
	for _, want := range []string{
		"installed CRD lighthouses.coast.example.com from config/crd/thirdparty/lighthouses.yaml",
		"samples that set no namespace are applied to ship-system",
	} {
		if !strings.Contains(p.said.String(), want) {
			t.Errorf("it does not say %q: %s", want, p.said)
		}
	}
	server := p.server(t)
	testenv.Eventually(t, "the sample greets", func() error {
		return server.Get(t.Context(), client.ObjectKey{Namespace: "ship-system", Name: "sample"}, &corev1.ConfigMap{})
	})
	if code := p.stop(t, os.Interrupt); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat("/etc/ship"); err == nil {
		t.Error("/etc/ship is on this machine")
	}
}

func write(t *testing.T, p *project, name, content string) {
	t.Helper()
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	testenv.WriteFile(t, path, content)
}
