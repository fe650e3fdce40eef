// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet proves that faults which strike all kinds at once lose nothing. What concerns a single kind is tested
// beside its controller.
package fleet

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
)

// each is one object of each kind, whose pods behave as it is said.
func each(number int, behaviour string) []string {
	annotations := `annotations: {opdock.dev/behaviour: ` + behaviour + `}`
	name := fmt.Sprintf("{name: \"%%s-%d\"}", number)
	named := func(kind string) string { return fmt.Sprintf(name, kind) }
	return []string{
		`{apiVersion: app.example.com/v1, kind: AppService, metadata: ` + named("app") + `,
		  spec: {size: 2, image: web, ports: [{port: 80}], podMetadata: {` + annotations + `}}}`,
		`{apiVersion: kubegroup.generals.space/v1, kind: PodCluster, metadata: ` + named("ring") + `,
		  spec: {podReplicas: 2, template: {metadata: {` + annotations + `}, spec: {containers: [{name: main}]}}}}`,
		`{apiVersion: robot.llleon.io/v1, kind: Robot, metadata: ` + named("robot") + `,
		  spec: {replicas: 2, template: {metadata: {` + annotations + `}, spec: {containers: [{name: robot}]}}}}`,
		`{apiVersion: collector.ip/v1, kind: Collector, metadata: ` + named("addresses") + `,
		  spec: {selector: {}, output: {configMapName: ` + fmt.Sprintf("\"addresses-%d\"", number) + `}}}`,
		`{apiVersion: kanggege.k8sio.com/v1, kind: KAPP, metadata: ` + named("kapp") + `, spec: {components: [
		  {name: one, resource: {apiVersion: robot.llleon.io/v1, kind: Robot, spec: {replicas: 1}}},
		  {name: two, dependsOn: [one], resource: {apiVersion: app.example.com/v1, kind: AppService, spec: {image: web}}}]}}`,
	}
}

// create creates objects and returns them.
func create(t *testing.T, c client.Client, namespace string, manifests []string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			t.Fatalf("%v in %s", err, manifest)
		}
		object.SetNamespace(namespace)
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %s: %v", object.GetKind(), err)
		}
		objects = append(objects, object)
	}
	return objects
}

func awaitReady(t *testing.T, c client.Client, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		testenv.Await(t, func() string {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err.Error()
			}
			if missing := fleettest.Ready(conditionsOf(t, object), object.GetGeneration()); missing != "" {
				return fmt.Sprintf("%s %s: %s", object.GetKind(), object.GetName(), missing)
			}
			return ""
		})
	}
}

func conditionsOf(t *testing.T, object *unstructured.Unstructured) []metav1.Condition {
	t.Helper()
	var status struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &status); err != nil {
		t.Fatal(err)
	}
	return status.Status.Conditions
}

// slow pods take a moment, so that there is time for something to happen meanwhile.
const slow, quick = "ready-after=1s", "run"

// children counts what is in a namespace, by type, without the history that some keep.
func children(t *testing.T, c client.Client, namespace string) map[string]int {
	t.Helper()
	result := map[string]int{}
	for _, kind := range controller.Kinds {
		for _, child := range kind.Children {
			gvk, err := c.GroupVersionKindFor(child)
			if err != nil {
				t.Fatal(err)
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(gvk)
			if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			alive := 0
			if err := meta.EachListItem(list, func(object runtime.Object) error {
				if object.(client.Object).GetDeletionTimestamp().IsZero() {
					alive++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if gvk.Kind != "ControllerRevision" {
				result[gvk.Kind] = alive
			}
		}
	}
	return result
}
