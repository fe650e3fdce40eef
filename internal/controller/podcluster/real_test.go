// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/config/samples"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
	"github.com/opdock/opdock/internal/testenv"
)

func TestSamplesBecomeReady(t *testing.T) {
	s := newStage(t)
	for file, want := range map[string]string{
		"kubegroup_v1_podcluster.yaml":      "podcluster-sample-0 podcluster-sample-1 podcluster-sample-2",
		"kubegroup_v1_podcluster_full.yaml": "ring-0.ring ring-1.ring ring-2.ring ring-3.ring ring-4.ring",
	} {
		manifest, err := samples.Manifests.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cluster := s.awaitReady(fleettest.Create(t, s, s.namespace, string(manifest), &kubegroupv1.PodCluster{}))
		var names []string
		for _, pod := range s.pods(cluster.Name) {
			name := pod.Name
			if pod.Spec.Subdomain != "" {
				name = pod.Spec.Hostname + "." + pod.Spec.Subdomain
			}
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: the pods are %s", file, got)
		}
		count := int32(len(names))
		status := cluster.Status
		if status.Replicas != count || status.ReadyReplicas != count || status.AvailableReplicas != count ||
			status.CurrentReplicas != count || status.UpdatedReplicas != count {
			t.Errorf("%s: the status is %+v", file, status)
		}
		if status.CurrentRevision == "" || status.CurrentRevision != status.UpdateRevision {
			t.Errorf("%s: the revisions are %q and %q", file, status.CurrentRevision, status.UpdateRevision)
		}
		if want := "app.kubernetes.io/instance=" + cluster.Name + ",app.kubernetes.io/name=podcluster"; status.Selector != want {
			t.Errorf("%s: the selector is %s", file, status.Selector)
		}
	}
}

func TestScaling(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 2, image: a}"))
	first := s.pod("web-0").UID
	for _, replicas := range []int{5, 1, 0, 3} {
		cluster = s.awaitReady(s.change(cluster, fmt.Sprintf(`{"podReplicas": %d}`, replicas)))
		var want []string
		for i := range replicas {
			want = append(want, fmt.Sprintf("web-%d=a", i))
		}
		if got := s.images("web"); got != strings.Join(want, " ") {
			t.Errorf("with %d replicas the pods are %s", replicas, got)
		}
		if int(cluster.Status.Replicas) != replicas {
			t.Errorf("with %d replicas the status counts %d", replicas, cluster.Status.Replicas)
		}
		if replicas == 1 && s.pod("web-0").UID != first {
			t.Error("the pod that was to stay was replaced")
		}
	}
	if revisions := s.revisions(); len(revisions) != 1 {
		t.Errorf("there are %d revisions", len(revisions))
	}
}

func TestImagesAreChangedInPlace(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 3, image: a, updateStrategy: {maxUnavailable: 34%}}"))
	before := s.pods("web")
	cluster = s.awaitReady(s.change(cluster, `{"image": "b"}`))
	for i, pod := range s.pods("web") {
		old := before[i]
		if pod.UID != old.UID || pod.Spec.NodeName != old.Spec.NodeName || pod.Status.PodIP != old.Status.PodIP {
			t.Errorf("%s did not keep its UID, node and address", pod.Name)
		}
		if pod.Spec.Containers[0].Image != "b" || pod.Status.ContainerStatuses[0].Image != "b" || pod.Status.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("%s does not run the new image: %+v", pod.Name, pod.Status.ContainerStatuses[0])
		}
		if "web-"+pod.Labels["controller-revision-hash"] != cluster.Status.UpdateRevision {
			t.Errorf("%s has the revision %s, not %s", pod.Name, pod.Labels["controller-revision-hash"], cluster.Status.UpdateRevision)
		}
	}
	// The way back leads to the revision that is still known.
	first := before[0].Labels["controller-revision-hash"]
	cluster = s.awaitReady(s.change(cluster, `{"image": "a"}`))
	if cluster.Status.UpdateRevision != "web-"+first || cluster.Status.CurrentRevision != "web-"+first {
		t.Errorf("the revisions are %s and %s, not %s", cluster.Status.UpdateRevision, cluster.Status.CurrentRevision, first)
	}
	numbers := map[string]int64{}
	for _, revision := range s.revisions() {
		numbers[revision.Name] = revision.Revision
	}
	if len(numbers) != 2 || numbers["web-"+first] != 3 {
		t.Errorf("the revisions have the numbers %v", numbers)
	}
}

// observe records how many pods were ready at each moment until it is asked for the fewest.
func (s *stage) observe() (fewest func() int) {
	s.Helper()
	var list corev1.PodList
	if err := s.List(s.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	ready := map[string]bool{}
	for i := range list.Items {
		ready[list.Items[i].Name] = health.IsReady(&list.Items[i])
	}
	watcher, err := s.Watch(s.Context(), &corev1.PodList{}, client.InNamespace(s.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		s.Fatal(err)
	}
	count := func() (n int) {
		for _, is := range ready {
			if is {
				n++
			}
		}
		return n
	}
	least, done := count(), make(chan int)
	go func() {
		for event := range watcher.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			ready[pod.Name] = event.Type != watch.Deleted && health.IsReady(pod)
			least = min(least, count())
		}
		done <- least
	}()
	return func() int {
		watcher.Stop()
		return <-done
	}
}

func TestReplacementLeavesEnoughPods(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 5, image: a, updateStrategy: {maxUnavailable: 2, inPlace: Never}}"))
	before := s.pods("web")
	fewest := s.observe()
	s.awaitReady(s.change(cluster, `{"image": "b"}`))
	if least := fewest(); least < 3 {
		t.Errorf("only %d pods were ready at some time", least)
	}
	for i, pod := range s.pods("web") {
		if pod.UID == before[i].UID || pod.Spec.Containers[0].Image != "b" {
			t.Errorf("%s was not replaced", pod.Name)
		}
	}
}

func TestPartition(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 3, image: a}"))
	cluster = s.awaitReady(s.change(cluster, `{"image": "b", "updateStrategy": {"partition": 2}}`))
	s.awaitImages("web", "web-0=a web-1=a web-2=b")
	status := cluster.Status
	if status.CurrentRevision == status.UpdateRevision || status.CurrentReplicas != 2 || status.UpdatedReplicas != 1 {
		t.Errorf("the status is %+v", status)
	}
	// Pods below the partition come back as they were.
	s.delete(s.pod("web-0"))
	s.delete(s.pod("web-2"))
	s.awaitImages("web", "web-0=a web-1=a web-2=b")
	s.awaitReady(cluster)
	cluster = s.awaitReady(s.change(cluster, `{"updateStrategy": {"partition": 0}}`))
	s.awaitImages("web", "web-0=b web-1=b web-2=b")
	if status := cluster.Status; status.CurrentRevision != status.UpdateRevision || status.CurrentReplicas != 3 {
		t.Errorf("the status is %+v", status)
	}
}

func TestOnDelete(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 2, image: a, updateStrategy: {type: OnDelete}}"))
	cluster = s.awaitReady(s.change(cluster, `{"image": "b"}`))
	s.awaitImages("web", "web-0=a web-1=a")
	if status := cluster.Status; status.CurrentRevision == status.UpdateRevision || status.UpdatedReplicas != 0 {
		t.Errorf("the status is %+v", status)
	}
	s.delete(s.pod("web-0"))
	s.awaitImages("web", "web-0=b web-1=a")
	s.delete(s.pod("web-1"))
	s.awaitImages("web", "web-0=b web-1=b")
	s.await(cluster, func(cluster *kubegroupv1.PodCluster) string {
		if cluster.Status.CurrentRevision != cluster.Status.UpdateRevision {
			return "the update is not over"
		}
		return fleettest.Ready(cluster.Status.Conditions, cluster.Generation)
	})
}

// Here, a StatefulSet would need a user to delete the broken pod.
func TestABrokenTemplateIsCorrected(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 3, image: a}"))
	behave := func(value string) string {
		return `{"template": {"metadata": {"annotations": {"opdock.dev/behaviour": ` + value + `}}}}`
	}
	fewest := s.observe()
	cluster = s.awaitStalled(s.change(cluster, behave(`"crash-loop"`)), "CrashLoopBackOff")
	if cluster.Status.AvailableReplicas != 2 || cluster.Status.UpdatedReplicas != 1 {
		t.Errorf("the status is %+v", cluster.Status)
	}
	cluster = s.awaitStalled(s.change(cluster, behave(`"image-pull-error"`)), "ImagePullBackOff")
	s.awaitReady(s.change(cluster, behave(`null`)))
	if least := fewest(); least < 2 {
		t.Errorf("only %d pods were ready at some time", least)
	}
}

func TestPodsThatAreNeverReadyAreReplaced(t *testing.T) {
	s := newStage(t)
	cluster := s.create("web", `{podReplicas: 1, progressDeadlineSeconds: 2, template: {
		metadata: {annotations: {opdock.dev/behaviour: never-ready}}, spec: {containers: [{name: main}]}}}`)
	s.awaitSuccessor(fleettest.Await(t, s, s.podNamed("web-0"), func(*corev1.Pod) string { return "" }))
	testenv.Await(t, func() string {
		if notes := strings.Join(s.notes(cluster, flow.ReasonSynced), "\n"); !strings.Contains(notes, "Deleted Pod web-0 (it has not been ready for 2s)") {
			return "no event says why: " + notes
		}
		return ""
	})
}

func TestFailedPodsAreReplaced(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 2, image: a}"))
	victim, other := s.pod("web-1"), s.pod("web-0").UID
	patch := `{"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}}`
	if err := s.Status().Patch(t.Context(), victim, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	s.awaitSuccessor(victim)
	s.awaitReady(cluster)
	if s.pod("web-0").UID != other {
		t.Error("the other pod was replaced as well")
	}
}

func TestHistory(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 1, image: a, revisionHistoryLimit: 1}"))
	for _, image := range []string{"b", "c", "d"} {
		cluster = s.awaitReady(s.change(cluster, `{"image": "`+image+`"}`))
	}
	testenv.Await(t, func() string {
		var numbers []int64
		for _, revision := range s.revisions() {
			numbers = append(numbers, revision.Revision)
		}
		slices.Sort(numbers)
		if !slices.Equal(numbers, []int64{3, 4}) {
			return fmt.Sprintf("the revisions %v are kept", numbers)
		}
		return ""
	})
}
