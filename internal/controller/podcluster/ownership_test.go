// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/testenv"
)

// bystander is a pod that no PodCluster has made.
func (s *stage) bystander(name string, labels map[string]string) *corev1.Pod {
	s.Helper()
	pod := s.podNamed(name)
	pod.Labels = labels
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "bystander"}}
	if err := s.Create(s.Context(), pod); err != nil {
		s.Fatal(err)
	}
	return pod
}

func memberLabels(instance string) map[string]string {
	return map[string]string{flow.LabelManagedBy: flow.ManagedBy, flow.LabelKind: "podcluster", flow.LabelInstance: instance}
}

func TestForeignPodsAreLeftAlone(t *testing.T) {
	s := newStage(t)
	foreign := s.bystander("web-1", map[string]string{"app": "other"})
	cluster := s.awaitStalled(s.create("web", "{podReplicas: 3, image: a}"), flow.ReasonResourceExists)
	// The other names are free.
	s.awaitImages("web", "web-0=a web-2=a")
	if live := s.pod("web-1"); live.UID != foreign.UID || len(live.OwnerReferences) > 0 || len(live.Labels) != 1 || live.Spec.Containers[0].Image != "bystander" {
		t.Errorf("the foreign pod has become %+v", live.ObjectMeta)
	}
	testenv.Await(t, func() string {
		if notes := s.notes(cluster, flow.ReasonResourceExists); len(notes) != 1 || !strings.Contains(notes[0], "Pod web-1 already exists") {
			return "the events are " + strings.Join(notes, "\n")
		}
		return ""
	})
	s.delete(foreign)
	s.awaitReady(cluster)
	s.awaitImages("web", "web-0=a web-1=a web-2=a")
}

// With the annotation it gets a foreign pod, and brings it to its template like any pod of another revision.
func TestForeignPodsAreAdoptedForMigrations(t *testing.T) {
	s := newStage(t)
	foreign := s.bystander("web-1", map[string]string{"app": "other"})
	cluster := s.awaitStalled(s.create("web", "{podReplicas: 2, image: a}"), flow.ReasonResourceExists)
	s.patch(cluster, `{"metadata": {"annotations": {"opdock.dev/adopt": "true"}}}`)
	s.awaitSuccessor(foreign)
	s.awaitReady(cluster)
	s.awaitImages("web", "web-0=a web-1=a")
	testenv.Await(t, func() string {
		if notes := strings.Join(s.notes(cluster, flow.ReasonSynced), "\n"); !strings.Contains(notes, "Adopted Pod web-1") {
			return "the events are " + notes
		}
		return ""
	})
}

// A pod of another controller is not adopted, even if its labels match.
func TestPodsOfOthersAreNotAdopted(t *testing.T) {
	s := newStage(t)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "owner"}}
	if err := s.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	foreign := s.podNamed("web-0")
	foreign.Labels = memberLabels("web")
	foreign.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	foreign.Spec.Containers = []corev1.Container{{Name: "main", Image: "bystander"}}
	if err := s.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	cluster := s.awaitStalled(s.create("web", "{podReplicas: 1, image: a}"), flow.ReasonResourceExists)
	if !metav1.IsControlledBy(s.pod("web-0"), owner) {
		t.Error("the pod was taken from its owner")
	}
	s.delete(foreign)
	s.awaitReady(cluster)
}

func TestOrphansAreAdopted(t *testing.T) {
	s := newStage(t)
	orphan := s.bystander("web-0", memberLabels("web"))
	misnamed := s.bystander("other", memberLabels("web"))
	superfluous := s.bystander("web-7", memberLabels("web"))
	cluster := s.awaitStalled(s.create("web", "{podReplicas: 2, image: a, updateStrategy: {type: OnDelete}}"), "UnknownRevision")
	if live := s.pod("web-0"); live.UID != orphan.UID || !metav1.IsControlledBy(live, cluster) {
		t.Errorf("the orphan was not adopted: %+v", live.ObjectMeta)
	}
	if live := s.pod("other"); live.UID != misnamed.UID || len(live.OwnerReferences) > 0 {
		t.Errorf("a pod with another name was adopted: %+v", live.ObjectMeta)
	}
	fleettest.AwaitGone(t, s, superfluous)
	// It follows no revision that is known, so it is replaced as soon as pods are updated.
	s.delete(misnamed)
	s.awaitReady(s.change(cluster, `{"updateStrategy": {"type": "RollingUpdate"}}`))
	s.awaitImages("web", "web-0=a web-1=a")
}

func TestPodsThatLoseTheirLabelsGetThemBack(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"of the instance": `{"metadata": {"labels": {"app.kubernetes.io/instance": "mine"}}}`,
		"of the fleet":    `{"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}`,
		"all":             `{"metadata": {"labels": null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			cluster := s.awaitReady(s.create("web", "{podReplicas: 2, image: a, updateStrategy: {type: OnDelete}}"))
			before := s.pod("web-1")
			s.patch(s.pod("web-1"), patch)
			fleettest.Await(t, s, s.podNamed("web-1"), func(pod *corev1.Pod) string {
				for _, label := range []string{flow.LabelManagedBy, flow.LabelKind, flow.LabelInstance, appsv1.PodIndexLabel, appsv1.ControllerRevisionHashLabelKey} {
					if pod.Labels[label] != before.Labels[label] {
						return fmt.Sprintf("the labels are %v", pod.Labels)
					}
				}
				return ""
			})
			if live := s.pod("web-1"); live.UID != before.UID || !metav1.IsControlledBy(live, cluster) {
				t.Errorf("the pod was replaced or released: %+v", live.ObjectMeta)
			}
			s.awaitReady(cluster)
		})
	}
}

// A revision whose name is taken gets another one.
func TestRevisionsCollide(t *testing.T) {
	s := newStage(t)
	// The hash depends only on the template.
	other := s.awaitReady(s.create("other", "{podReplicas: 1, image: a}"))
	name := "web-" + strings.TrimPrefix(other.Status.UpdateRevision, "other-")
	foreign := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Revision: 9}
	foreign.Data.Raw = []byte(`{"not": "ours"}`)
	if err := s.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	cluster := s.awaitReady(s.create("web", "{podReplicas: 1, image: a}"))
	if count := cluster.Status.CollisionCount; count == nil || *count != 1 || cluster.Status.UpdateRevision == name {
		t.Errorf("the status is %+v", cluster.Status)
	}
	if live := s.revision(name); live.UID != foreign.UID || len(live.OwnerReferences) > 0 {
		t.Errorf("the foreign revision has become %+v", live)
	}
}

func TestAQuotaStallsAndIsTriedAgain(t *testing.T) {
	s := newStage(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "few"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
	if err := s.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	fleettest.Await(t, s, quota, func(quota *corev1.ResourceQuota) string {
		if len(quota.Status.Hard) == 0 {
			return "the quota is not in force"
		}
		return ""
	})
	cluster := s.awaitStalled(s.create("web", "{podReplicas: 4, image: a}"), flow.ReasonForbidden)
	if pods := s.pods("web"); len(pods) != 2 {
		t.Errorf("there are %d pods", len(pods))
	}
	if message := cluster.Status.Conditions[0].Message; !strings.Contains(message, "exceeded quota: few") {
		t.Errorf("the message is %q", message)
	}
	s.delete(quota)
	s.awaitReady(cluster)
}

func TestAnInvalidPodStalls(t *testing.T) {
	s := newStage(t)
	resources := func(request string) string {
		return `{"template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "` + request + `"}, "limits": {"cpu": "1"}}}]}}}`
	}
	cluster := s.awaitStalled(s.create("web", resources("2")), flow.ReasonInvalid)
	s.awaitReady(s.change(cluster, resources("1")))
}

// Pods are as they are written, so a namespace that asks for more refuses them, and says what is missing.
func TestANamespaceWithRestrictions(t *testing.T) {
	s := newStage(t)
	s.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`)
	// The server takes a moment to know.
	probe := s.podNamed("probe")
	probe.Spec.Containers = []corev1.Container{{Name: "main", Image: "a"}}
	testenv.Await(t, func() string {
		if err := s.Create(t.Context(), probe.DeepCopy(), client.DryRunAll); err == nil {
			return "pods are not restricted yet"
		}
		return ""
	})
	cluster := s.awaitStalled(s.create("web", "{podReplicas: 1}"), flow.ReasonForbidden)
	if message := cluster.Status.Conditions[0].Message; !strings.Contains(message, "runAsNonRoot") {
		t.Errorf("the message is %q", message)
	}
	s.awaitReady(s.change(cluster, `{"template": {"spec": {
		"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
		"containers": [{"name": "main", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]}}}`))
}

// Removed labels of children are restored, and deleted children are recreated.
func TestHandEditsAreRepaired(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 2, image: a}"))

	gone := s.pod("web-0")
	s.delete(gone)
	s.awaitSuccessor(gone)
	s.awaitReady(cluster)

	s.patch(s.pod("web-1"), `{"metadata": {"labels": {"apps.kubernetes.io/pod-index": "7"}}}`)
	fleettest.Await(t, s, s.podNamed("web-1"), func(pod *corev1.Pod) string {
		if pod.Labels["apps.kubernetes.io/pod-index"] != "1" {
			return "its number is wrong"
		}
		return ""
	})

	s.patch(s.pod("web-1"), `[{"op": "replace", "path": "/metadata/ownerReferences/0/blockOwnerDeletion", "value": false}]`)
	fleettest.Await(t, s, s.podNamed("web-1"), func(pod *corev1.Pod) string {
		if len(pod.OwnerReferences) != 1 || pod.OwnerReferences[0].BlockOwnerDeletion == nil || !*pod.OwnerReferences[0].BlockOwnerDeletion {
			return fmt.Sprintf("its owners are %+v", pod.OwnerReferences)
		}
		return ""
	})

	unlabelled, hash := s.pod("web-1"), s.pod("web-1").Labels[appsv1.ControllerRevisionHashLabelKey]
	s.patch(s.pod("web-1"), `{"metadata": {"labels": {"controller-revision-hash": null}}}`)
	fleettest.Await(t, s, s.podNamed("web-1"), func(pod *corev1.Pod) string {
		if pod.UID != unlabelled.UID {
			t.Fatal("the pod was replaced because of its label")
		}
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] != hash {
			return "it lacks the label of its revision"
		}
		return ""
	})
	cluster = s.awaitReady(cluster)

	revision := s.revision(cluster.Status.UpdateRevision)
	s.delete(revision)
	fleettest.Await(t, s, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: revision.Name}},
		func(live *appsv1.ControllerRevision) string {
			if live.UID == revision.UID {
				return "it is still the same"
			}
			return ""
		})
	pods := s.pods("web")
	for _, label := range []string{flow.LabelManagedBy, flow.LabelInstance} {
		s.patch(s.revision(revision.Name), `{"metadata": {"labels": {"`+label+`": null}}}`)
		fleettest.Await(t, s, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: revision.Name}},
			func(live *appsv1.ControllerRevision) string {
				if live.Labels[label] == "" {
					return "it lacks the label " + label
				}
				return ""
			})
	}
	s.awaitReady(cluster)
	for i, pod := range s.pods("web") {
		if pod.UID != pods[i].UID {
			t.Errorf("%s was replaced because of its revision's labels", pod.Name)
		}
	}
	var revisions []string
	for _, one := range s.revisions() {
		revisions = append(revisions, one.Name)
	}
	if len(revisions) != 1 {
		t.Errorf("the revisions are %v", revisions)
	}
}
