// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/internal/workload"
)

// stage is a namespace of a test with a manager that looks after the PodClusters in it.
type stage struct {
	testing.TB
	client.WithWatch
	namespace string
	wire      *fleettest.Wire
	stop      func()
}

func newStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	return newLoneStage(t)
}

// newLoneStage is for tests that other tests would disturb.
func newLoneStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{TB: t, WithWatch: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	s.run()
	return s
}

// run starts a manager with a new wire.
func (s *stage) run() {
	s.Helper()
	s.runCut(-1)
}

// runCut starts a manager whose wire is cut after a number of writes, and returns what is closed then.
func (s *stage) runCut(writes int) (cut <-chan struct{}) {
	s.Helper()
	wire, config := fleettest.NewWire(fleettest.Config(s.TB))
	if writes >= 0 {
		cut = wire.CutAfter(writes)
	}
	s.wire = wire
	s.stop = fleettest.Run(s.TB, config, manager.Options{Namespaces: []string{s.namespace}, Kinds: []controller.Kind{kind(s.TB)}})
	return cut
}

func kind(t testing.TB) controller.Kind {
	t.Helper()
	index := slices.IndexFunc(controller.Kinds, func(k controller.Kind) bool { return k.Kind == "PodCluster" })
	if index < 0 {
		t.Fatal("PodCluster is not registered")
	}
	return controller.Kinds[index]
}

// create creates a PodCluster from the YAML of its spec.
func (s *stage) create(name, spec string) *kubegroupv1.PodCluster {
	s.Helper()
	manifest := "apiVersion: kubegroup.generals.space/v1\nkind: PodCluster\nmetadata: {name: " + name + "}\nspec: " + spec
	return fleettest.Create(s.TB, s.WithWatch, s.namespace, manifest, &kubegroupv1.PodCluster{})
}

// change changes the spec by a merge patch.
func (s *stage) change(cluster *kubegroupv1.PodCluster, spec string) *kubegroupv1.PodCluster {
	s.Helper()
	s.patch(cluster, `{"spec": `+spec+`}`)
	return cluster
}

func (s *stage) patch(object client.Object, patch string) {
	s.Helper()
	patchType := types.MergePatchType
	if strings.HasPrefix(patch, "[") {
		patchType = types.JSONPatchType
	}
	if err := s.Patch(s.Context(), object, client.RawPatch(patchType, []byte(patch))); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) awaitReady(cluster *kubegroupv1.PodCluster) *kubegroupv1.PodCluster {
	s.Helper()
	return s.await(cluster, func(cluster *kubegroupv1.PodCluster) string {
		return fleettest.Ready(cluster.Status.Conditions, cluster.Generation)
	})
}

func (s *stage) awaitStalled(cluster *kubegroupv1.PodCluster, reason string) *kubegroupv1.PodCluster {
	s.Helper()
	return s.await(cluster, func(cluster *kubegroupv1.PodCluster) string {
		return fleettest.Stalled(cluster.Status.Conditions, cluster.Generation, reason)
	})
}

func (s *stage) await(cluster *kubegroupv1.PodCluster, missing func(*kubegroupv1.PodCluster) string) *kubegroupv1.PodCluster {
	s.Helper()
	return fleettest.Await(s.TB, s.WithWatch, cluster, missing)
}

// pods are the pods of a PodCluster by their labels, in the order of their names.
func (s *stage) pods(cluster string) []corev1.Pod {
	s.Helper()
	var list corev1.PodList
	err := s.List(s.Context(), &list, client.InNamespace(s.namespace), client.MatchingLabels(workload.SelectorLabels("podcluster", cluster)))
	if err != nil {
		s.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

func (s *stage) pod(name string) *corev1.Pod {
	s.Helper()
	pod := &corev1.Pod{}
	if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, pod); err != nil {
		s.Fatal(err)
	}
	return pod
}

func (s *stage) revisions() []appsv1.ControllerRevision {
	s.Helper()
	var list appsv1.ControllerRevisionList
	if err := s.List(s.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// images says which pod has which image, such as "web-0=a web-1=b".
func (s *stage) images(cluster string) string {
	s.Helper()
	var parts []string
	for _, pod := range s.pods(cluster) {
		parts = append(parts, pod.Name+"="+pod.Spec.Containers[0].Image)
	}
	return strings.Join(parts, " ")
}

func (s *stage) awaitImages(cluster, want string) {
	s.Helper()
	testenv.Await(s.TB, func() string {
		if got := s.images(cluster); got != want {
			return fmt.Sprintf("the pods are %s, not %s", got, want)
		}
		return ""
	})
}

func (s *stage) podNamed(name string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = s.namespace, name
	return pod
}

func (s *stage) delete(object client.Object, options ...client.DeleteOption) {
	s.Helper()
	if err := s.Delete(s.Context(), object, options...); err != nil {
		s.Fatal(err)
	}
}

// awaitSuccessor waits for another pod with the same name.
func (s *stage) awaitSuccessor(pod *corev1.Pod) *corev1.Pod {
	s.Helper()
	uid := pod.UID
	return fleettest.Await(s.TB, s.WithWatch, s.podNamed(pod.Name), func(pod *corev1.Pod) string {
		if pod.UID == uid {
			return "it is still the same"
		}
		return ""
	})
}

// notes are the texts of the events about an object that have a reason.
func (s *stage) notes(object client.Object, reason string) []string {
	s.Helper()
	var list eventsv1.EventList
	if err := s.List(s.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	var notes []string
	for _, event := range list.Items {
		if event.Regarding.UID == object.GetUID() && event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

func (s *stage) revision(name string) *appsv1.ControllerRevision {
	s.Helper()
	revision := &appsv1.ControllerRevision{}
	if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, revision); err != nil {
		s.Fatal(err)
	}
	return revision
}
