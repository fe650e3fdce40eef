// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/config/samples"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

// neededElsewhere are rights that this test does not see in use, with the reason why they are granted.
func neededElsewhere(r right) string {
	switch {
	case strings.HasSuffix(r.resource, "/finalizers"):
		return "the admission plugin OwnerReferencesPermissionEnforcement, which is off by default, asks for it"
	case r.verb == "patch" && r.resource == "events":
		return "it counts the same event again, which takes minutes"
	case r == right{verb: "get", group: "apps", resource: "controllerrevisions"}:
		return "it looks closer when a revision cannot be created because there is one of that name"
	case r.verb == "get" && isOfTheFleet(r):
		return "it asks the server for an object when its own write has not come back to its cache yet"
	case r.verb == "list":
		return "API servers that cannot stream the objects at the beginning of a watch are asked for a list"
	default:
		return ""
	}
}

func isOfTheFleet(r right) bool {
	return slices.ContainsFunc(controller.Kinds, func(kind controller.Kind) bool { return kind.Group == r.group && kind.Plural == r.resource })
}

// TestTheManagerHasTheRightsItNeedsAndNoOthers lets the manager do everything that it can do, with the rights that the
// manifests grant it.
func TestTheManagerHasTheRightsItNeedsAndNoOthers(t *testing.T) {
	c := fleettest.Client(t)
	manifests := rendered(t, "config/default")
	applyAll(t, c, manifests)
	namespace := clustertest.Namespace(t)
	// It may be there from another test.
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: manager.LeaderElectionID}}
	if err := c.Delete(t.Context(), lease); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}

	requests, config := newRequests(asManager(t))
	// A kind that is missing at first makes the manager watch CRDs.
	late := controller.Kinds[0]
	uninstall(t, c, late)
	address := freeAddress(t)
	fleettest.Run(t, config, manager.Options{
		LeaderElection: true, LeaderElectionNamespace: systemNamespace,
		Metrics: metricsserver.Options{BindAddress: address, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization},
	})
	testenv.Await(t, func() string {
		if !requests.has(right{"watch", "apiextensions.k8s.io", "customresourcedefinitions"}) {
			return "CRDs are not watched"
		}
		return ""
	})
	apply(t, c, manifests)

	objects := applySamples(t, c, namespace)
	awaitReady(t, c, objects)
	spoilChildren(t, c, namespace)
	changeSamples(t, c, objects)
	awaitReady(t, c, objects)
	objects = append(objects, rollBack(t, c, namespace), getOutOfTheWay(t, c, namespace))
	scraper := token(t, c, "scraper", "opdock-metrics-reader")
	testenv.Await(t, func() string {
		// Other tests may have left some of other kinds.
		expected := fmt.Sprintf(`opdock_objects{kind="KAPP",ready="True"} %d`, count(objects, "KAPP"))
		if status, body := get(t, "https://"+address+"/metrics", scraper); !strings.Contains(body, expected) {
			return fmt.Sprintf("there is no %s in the metrics, which were answered with %d", expected, status)
		}
		return ""
	})
	for _, object := range objects {
		if err := c.Delete(t.Context(), object); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	for _, object := range objects {
		fleettest.AwaitGone(t, c, object)
	}

	for _, refused := range requests.refusals() {
		t.Errorf("the manager is not allowed to %s", refused)
	}
	for _, right := range requests.unused(grants(t, manifests)) {
		if neededElsewhere(right) == "" {
			t.Errorf("the manager does not need to be allowed to %v", right)
		}
	}
}

// spoilChildren changes a label of everything that belongs to an object of the fleet, and waits until it has been corrected.
// Pods and revisions are left out: the manager creates them and does not apply them.
func spoilChildren(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	var all []client.Object
	for _, kind := range controller.Kinds {
		all = append(append(all, kind.New()), kind.Children...)
	}
	for _, of := range all {
		gvk, err := c.GroupVersionKindFor(of)
		if err != nil {
			t.Fatal(err)
		}
		if gvk.Kind == "Pod" || gvk.Kind == "ControllerRevision" {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		if err := c.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{flow.LabelManagedBy: flow.ManagedBy}); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			child := &list.Items[i]
			if err := c.Patch(t.Context(), child, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"`+flow.LabelKind+`": "spoilt"}}}`))); err != nil {
				t.Fatal(err)
			}
			testenv.Await(t, func() string {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
					return err.Error()
				}
				if child.Labels[flow.LabelKind] == "spoilt" {
					return gvk.Kind + " " + child.Name + " is still spoilt"
				}
				return ""
			})
		}
	}
}

// applySamples applies one sample of each name. The kinds that are not registered are left out.
func applySamples(t *testing.T, c client.Client, namespace string) []*unstructured.Unstructured {
	t.Helper()
	registered := map[string]bool{}
	for _, kind := range controller.Kinds {
		registered[kind.Kind] = true
	}
	var objects []*unstructured.Unstructured
	paths, err := fs.Glob(samples.Manifests, "*_v1_*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are %d samples: %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := samples.Manifests.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range decode(t, data) {
			if registered[object.GetKind()] {
				object.SetNamespace(namespace)
				objects = append(objects, object)
			}
		}
	}
	apply(t, c, objects)
	return objects
}

func awaitReady(t *testing.T, c client.Client, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		fleettest.Await(t, c, object, func(object *unstructured.Unstructured) string {
			conditions, err := conditionsOf(object)
			if err != nil {
				return err.Error()
			}
			if missing := fleettest.Ready(conditions, object.GetGeneration()); missing != "" {
				return object.GetKind() + " " + object.GetName() + ": " + missing
			}
			return ""
		})
	}
}

func count(objects []*unstructured.Unstructured, kind string) int {
	number := 0
	for _, object := range objects {
		if object.GetKind() == kind {
			number++
		}
	}
	return number
}

// changeSamples makes use of what only changes make use of: children that are not wanted any more, and updates.
func changeSamples(t *testing.T, c client.Client, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, change := range []struct{ kind, name, patch string }{
		{"AppService", "shop", `{"spec":{"ports":null,"ingress":null,"autoscaling":null,"networkPolicy":null,"disruptionBudget":null,"service":null}}`},
		{"AppService", "nginx-app", `{"spec":{"size":1,"image":"nginx:1.29"}}`},
		{"PodCluster", "ring", `{"spec":{"podReplicas":3,"image":"nginx:1.30","revisionHistoryLimit":0,"updateStrategy":{"partition":0}}}`},
		{"PodCluster", "podcluster-sample", `{"spec":{"podReplicas":2,"template":{"metadata":{"labels":{"tier":"other"}},"spec":{"containers":[{"name":"other"}]}}}}`},
		{"Robot", "robot-one", `{"spec":{"deploymentName":"robot-two"}}`},
		{"Collector", "web-allow-list", `{"spec":{"output":null}}`},
		{"KAPP", "store", `{"spec":{"components":[{"name":"members","resource":{"apiVersion":"kubegroup.generals.space/v1","kind":"PodCluster","spec":{"podReplicas":2}}}]}}`},
	} {
		for _, object := range objects {
			if object.GetKind() != change.kind || object.GetName() != change.name {
				continue
			}
			patch := client.RawPatch(types.MergePatchType, []byte(change.patch))
			if err := c.Patch(t.Context(), object.DeepCopy(), patch); err != nil {
				t.Fatalf("changing %s %s: %v", change.kind, change.name, err)
			}
		}
	}
}

// rollBack lets a PodCluster return to what it was, which makes an old revision the newest.
func rollBack(t *testing.T, c client.Client, namespace string) *unstructured.Unstructured {
	t.Helper()
	for _, image := range []string{"one", "two", "one"} {
		cluster := podCluster(namespace, "undecided", image)
		apply(t, c, []*unstructured.Unstructured{cluster})
		awaitReady(t, c, []*unstructured.Unstructured{cluster})
	}
	return podCluster(namespace, "undecided", "")
}

// getOutOfTheWay creates a pod of another owner with the name of a PodCluster's pod.
func getOutOfTheWay(t *testing.T, c client.Client, namespace string) *unstructured.Unstructured {
	t.Helper()
	foreign := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "taken-0"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "other"}}},
	}
	if err := c.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	cluster := podCluster(namespace, "taken", "mine")
	apply(t, c, []*unstructured.Unstructured{cluster})
	fleettest.Await(t, c, cluster, func(cluster *unstructured.Unstructured) string {
		conditions, err := conditionsOf(cluster)
		if err != nil {
			return err.Error()
		}
		return fleettest.Stalled(conditions, cluster.GetGeneration(), flow.ReasonResourceExists)
	})
	if err := c.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, c, []*unstructured.Unstructured{cluster})
	return cluster
}

func podCluster(namespace, name, image string) *unstructured.Unstructured {
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubegroup.generals.space/v1", "kind": "PodCluster",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"podReplicas": int64(1), "image": image},
	}}
	return cluster
}

func uninstall(t *testing.T, c client.Client, kind controller.Kind) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(kind.CRD())
	if err := c.Delete(context.WithoutCancel(t.Context()), crd); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	fleettest.AwaitGone(t, c, crd)
}
