// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/controller/podcluster"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

func TestSuspendLeavesEverythingAsItIs(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 2, image: a}"))
	cluster = s.await(s.change(cluster, `{"suspend": true, "image": "b", "podReplicas": 1}`), func(cluster *kubegroupv1.PodCluster) string {
		return fleettest.Condition(cluster.Status.Conditions, cluster.Generation, sharedv1.ConditionReady, metav1.ConditionUnknown, "Suspended")
	})
	// A second PodCluster is looked at after the deletion of the first one's pod.
	s.delete(s.pod("web-0"))
	fleettest.AwaitGone(t, s, s.podNamed("web-0"))
	s.awaitReady(s.create("probe", "{podReplicas: 1}"))
	s.awaitImages("web", "web-1=a")
	s.awaitReady(s.change(cluster, `{"suspend": false}`))
	s.awaitImages("web", "web-0=b")
}

func TestDeletion(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			s := newStage(t)
			cluster := s.awaitReady(s.create("web", "{podReplicas: 3, image: a}"))
			s.delete(cluster, client.PropagationPolicy(policy))
			fleettest.AwaitGone(t, s, cluster)
			testenv.Await(t, func() string {
				if pods, revisions := s.pods("web"), s.revisions(); len(pods)+len(revisions) > 0 {
					return fmt.Sprintf("%d pods and %d revisions are left", len(pods), len(revisions))
				}
				return ""
			})
		})
	}
}

// With several namespaces a pass may not see what the one before it wrote, and must do no harm then.
func TestSeveralNamespaces(t *testing.T) {
	t.Parallel()
	s := &stage{TB: t, WithWatch: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	fleettest.Run(t, fleettest.Config(t), manager.Options{
		Namespaces: []string{s.namespace, clustertest.Namespace(t)}, Kinds: []controller.Kind{kind(t)},
	})
	cluster := s.awaitReady(s.create("web", "{podReplicas: 4, image: a}"))
	fewest := s.observe()
	cluster = s.awaitReady(s.change(cluster, `{"image": "b"}`))
	cluster = s.awaitReady(s.change(cluster, `{"template": {"metadata": {"labels": {"x": "y"}}}}`))
	if least := fewest(); least < 3 {
		t.Errorf("only %d pods were ready at some time", least)
	}
	s.awaitReady(s.change(cluster, `{"podReplicas": 2}`))
	s.awaitImages("web", "web-0=b web-1=b")
	if revisions := s.revisions(); len(revisions) != 3 || cluster.Status.CollisionCount != nil {
		t.Errorf("there are %d revisions, and the status is %+v", len(revisions), cluster.Status)
	}
}

// What is left of a deleted PodCluster is in the way of the next one for a moment only, which is not worth a warning.
func TestDeletionAndCreationInOneGo(t *testing.T) {
	s := newStage(t)
	before := s.awaitReady(s.create("web", "{podReplicas: 2, image: a}"))
	old := s.pods("web")
	s.delete(before, client.PropagationPolicy(metav1.DeletePropagationBackground))
	cluster := s.awaitReady(s.create("web", "{podReplicas: 2, image: a}"))
	for i, pod := range s.pods("web") {
		if pod.UID == old[i].UID || !metav1.IsControlledBy(&pod, cluster) {
			t.Errorf("%s is still the old one", pod.Name)
		}
	}
	if cluster.Status.CollisionCount != nil || cluster.Status.UpdateRevision != before.Status.UpdateRevision {
		t.Errorf("the status is %+v", cluster.Status)
	}
	if warnings := s.notes(cluster, flow.ReasonResourceExists); len(warnings) > 0 {
		t.Errorf("there are warnings: %q", warnings)
	}
}

// Orphans stay, and the next PodCluster of that name goes on with them as they are.
func TestOrphaningAndTakingOver(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 3, image: a}"))
	before := s.pods("web")
	s.delete(cluster, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	fleettest.AwaitGone(t, s, cluster)
	for _, pod := range s.pods("web") {
		if len(pod.OwnerReferences) > 0 || !pod.DeletionTimestamp.IsZero() {
			t.Errorf("%s was not orphaned: %+v", pod.Name, pod.ObjectMeta)
		}
	}
	cluster = s.awaitReady(s.create("web", "{podReplicas: 3, image: a}"))
	for i, pod := range s.pods("web") {
		if pod.UID != before[i].UID || pod.Status.ContainerStatuses[0].RestartCount != 0 || !metav1.IsControlledBy(&pod, cluster) {
			t.Errorf("%s was not taken over as it is", pod.Name)
		}
	}
	if revisions := s.revisions(); len(revisions) != 1 || !metav1.IsControlledBy(&revisions[0], cluster) {
		t.Errorf("the revisions are %+v", revisions)
	}
}

// A namespace is deleted with everything in it, and no controller fills it again.
func TestTheNamespaceIsDeleted(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 3, image: a}"))
	s.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	fleettest.AwaitGone(t, s, cluster)
	testenv.Await(t, func() string {
		if pods := s.pods("web"); len(pods) > 0 {
			return fmt.Sprintf("%d pods are left", len(pods))
		}
		return ""
	})
	if stalled := s.notes(cluster, "Forbidden"); len(stalled) > 0 {
		t.Errorf("there are warnings: %q", stalled)
	}
}

// It counts looks, which other tests cause as well, so it is not parallel.
func TestQuietAfterConvergence(t *testing.T) {
	s := newLoneStage(t)
	plain := s.awaitReady(s.create("plain", "{podReplicas: 2, image: a}"))
	partitioned := s.awaitReady(s.create("partitioned", "{podReplicas: 2, image: a, minReadySeconds: 1}"))
	partitioned = s.awaitReady(s.change(partitioned, `{"image": "b", "updateStrategy": {"partition": 1}}`))
	plain = s.awaitReady(s.change(plain, `{"image": "b"}`))
	s.stop()

	awaitLooks := func(before, more int) {
		t.Helper()
		testenv.Await(t, func() string {
			if looks := fleettest.Looks(t, "PodCluster") - before; looks < more {
				return fmt.Sprintf("%d of %d looks", looks, more)
			}
			return ""
		})
	}
	looks := fleettest.Looks(t, "PodCluster")
	s.run()
	awaitLooks(looks, 2)
	for _, name := range []string{"plain-0", "partitioned-0", "partitioned-1"} {
		looks = fleettest.Looks(t, "PodCluster")
		s.patch(s.pod(name), `{"metadata": {"labels": {"of-no": "importance"}}}`)
		awaitLooks(looks, 1)
	}
	s.stop()
	if writes := s.wire.AllWrites(); len(writes) > 0 {
		t.Errorf("these were written: %q", writes)
	}
	for _, cluster := range []*kubegroupv1.PodCluster{plain, partitioned} {
		if now := s.await(cluster, func(*kubegroupv1.PodCluster) string { return "" }); now.ResourceVersion != cluster.ResourceVersion {
			t.Errorf("%s has been written to", cluster.Name)
		}
	}
}

// The schema is another one meanwhile, so it is not parallel.
func TestWhatALaxerSchemaLetIn(t *testing.T) {
	s := newLoneStage(t)
	for name, spec := range map[string]string{
		"unavailable": "{podReplicas: 2, updateStrategy: {maxUnavailable: some}}",
		"negative":    "{updateStrategy: {partition: -2}}",
		"hasty":       "{progressDeadlineSeconds: 0}",
	} {
		object := &unstructured.Unstructured{}
		manifest := fmt.Sprintf("{apiVersion: kubegroup.generals.space/v1, kind: PodCluster, metadata: {name: %s, namespace: %s}, spec: %s}", name, s.namespace, spec)
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			t.Fatal(err)
		}
		fleettest.CreateUnchecked(t, s, kind(t), object)
		cluster := &kubegroupv1.PodCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
		s.awaitStalled(cluster, podcluster.ReasonInvalidSpec)
		if pods := s.pods(name); len(pods) > 0 {
			t.Errorf("%s has %d pods", name, len(pods))
		}
	}
	// Without any of the defaults.
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubegroup.generals.space/v1", "kind": "PodCluster", "metadata": map[string]any{"name": "bare", "namespace": s.namespace},
	}}
	fleettest.CreateUnchecked(t, s, kind(t), object)
	s.awaitReady(&kubegroupv1.PodCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "bare"}})
	s.awaitImages("bare", "bare-0=nginx:1.29")
}

// A manager that dies after any of its writes leaves nothing that the next one cannot complete.
func TestKilledAfterEachWrite(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		if n > 0 && !killedAfter(t, n) {
			if n < 10 {
				t.Errorf("only %d writes were seen", n)
			}
			return
		}
	}
	t.Error("there is no end of writes")
}

// killedAfter tells a story during which the manager is killed after a number of writes, and returns whether it was.
func killedAfter(t *testing.T, writes int) (killed bool) {
	t.Helper()
	s := &stage{TB: t, WithWatch: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	cut := s.runCut(writes)
	var cluster *kubegroupv1.PodCluster
	settle := func() {
		t.Helper()
		s.await(cluster, func(cluster *kubegroupv1.PodCluster) string {
			select {
			case <-cut:
				s.stop()
				s.run()
				cut, killed = nil, true
			default:
			}
			return fleettest.Ready(cluster.Status.Conditions, cluster.Generation)
		})
	}
	cluster = s.create("web", "{podReplicas: 3, image: a, revisionHistoryLimit: 0}")
	settle()
	s.change(cluster, `{"image": "b", "podReplicas": 2}`)
	settle()
	s.change(cluster, `{"template": {"metadata": {"labels": {"x": "y"}}}}`)
	settle()
	testenv.Await(t, func() string {
		var state []string
		for _, pod := range s.pods("web") {
			state = append(state, pod.Name+"="+pod.Spec.Containers[0].Image+pod.Labels["x"])
		}
		for _, revision := range s.revisions() {
			state = append(state, strconv.FormatInt(revision.Revision, 10))
		}
		if !slices.Equal(state, []string{"web-0=by", "web-1=by", "3"}) {
			return fmt.Sprintf("killed after %d writes it ends as %s", writes, strings.Join(state, " "))
		}
		return ""
	})
	s.stop()
	return killed
}
