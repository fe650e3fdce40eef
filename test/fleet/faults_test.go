// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

func TestTheServerRestartsInTheMiddleOfARollout(t *testing.T) {
	testenv.ControlPlane(t)
	t.Setenv("OPDOCK_HOME", t.TempDir())
	options := cluster.Options{Name: "restarted"}
	dock, err := cluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dock.Stop() }()
	if err := controller.Install(t.Context(), dock.Config(), controller.Kinds); err != nil {
		t.Fatal(err)
	}
	c := clientFor(t, dock.Config())
	fleettest.Run(t, dock.Config(), manager.Options{})
	objects := create(t, c, "default", each(0, slow))
	// It is in the middle when the first pod is there.
	testenv.Await(t, func() string {
		var list corev1.PodList
		if err := c.List(t.Context(), &list, client.InNamespace("default")); err != nil || len(list.Items) > 0 {
			return ""
		}
		return "there are no pods"
	})
	if err := dock.Stop(); err != nil {
		t.Fatal(err)
	}
	if dock, err = cluster.Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, c, objects)
	got := children(t, c, "default")
	want := map[string]int{"Pod": 8, "Deployment": 4}
	for kind, number := range want {
		if got[kind] != number {
			t.Errorf("there are %d of %s, not %d", got[kind], kind, number)
		}
	}
}

func TestTheLeaderChangesUnderLoad(t *testing.T) {
	c := fleettest.Client(t)
	config := fleettest.Config(t)
	namespace := clustertest.Namespace(t)
	options := manager.Options{Namespaces: []string{namespace}, LeaderElection: true, LeaderElectionNamespace: namespace}
	stop := fleettest.Run(t, config, options)
	fleettest.Run(t, config, options)
	var objects []*unstructured.Unstructured
	for i := range 5 {
		objects = append(objects, create(t, c, namespace, each(i, slow))...)
		if i == 2 {
			// Which of the two is the leader does not matter: if it is the other, this one must not be missed.
			stop()
		}
	}
	awaitReady(t, c, objects)
	// And once more, from no leader to a third.
	fleettest.Run(t, config, options)
	for _, object := range objects {
		touch(t, c, object, 1)
	}
	awaitReady(t, c, objects)
}

func TestTheNamespaceIsDeletedUnderIt(t *testing.T) {
	c := fleettest.Client(t)
	namespace := clustertest.Namespace(t)
	fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{namespace}})
	create(t, c, namespace, each(0, slow))
	going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Delete(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	fleettest.AwaitGone(t, c, going)
}

func TestFiftyChangesInASecond(t *testing.T) {
	c := fleettest.Client(t)
	namespace := clustertest.Namespace(t)
	wire, config := fleettest.NewWire(fleettest.Config(t))
	fleettest.Run(t, config, manager.Options{Namespaces: []string{namespace}})
	objects := create(t, c, namespace, each(0, quick))
	awaitReady(t, c, objects)
	before := children(t, c, namespace)
	for i := range 50 {
		for _, object := range objects {
			touch(t, c, object, i+1)
		}
	}
	awaitReady(t, c, objects)
	testenv.Await(t, func() string {
		if after := children(t, c, namespace); !maps.Equal(before, after) {
			return fmt.Sprintf("before: %v, after: %v", before, after)
		}
		return ""
	})
	// All readers are at the last change, and none got a change twice.
	for _, object := range objects {
		if observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); observed != object.GetGeneration() {
			t.Errorf("%s is at %d of %d", object.GetKind(), observed, object.GetGeneration())
		}
	}
	t.Logf("%d writes for 50 changes of %d objects", len(wire.AllWrites()), len(objects))
}

// touch changes something in the spec that has to reach the children.
func touch(t *testing.T, c client.Client, object *unstructured.Unstructured, number int) {
	t.Helper()
	patch := map[string]string{
		"AppService": `{"spec": {"podMetadata": {"labels": {"number": "%d"}}}}`,
		"PodCluster": `{"spec": {"template": {"metadata": {"labels": {"number": "%d"}}}}}`,
		"Robot":      `{"spec": {"template": {"metadata": {"labels": {"number": "%d"}}}}}`,
		"Collector":  `{"spec": {"debounceMilliseconds": %d}}`,
		"KAPP": `{"spec": {"components": [
			{"name": "one", "resource": {"apiVersion": "robot.llleon.io/v1", "kind": "Robot", "spec": {"replicas": 1}}},
			{"name": "two", "dependsOn": ["one"], "resource": {"apiVersion": "app.example.com/v1", "kind": "AppService", "spec": {"image": "web:%d"}}}]}}`,
	}[object.GetKind()]
	if err := c.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, patch, number))); err != nil {
		t.Fatal(err)
	}
}

func clientFor(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
