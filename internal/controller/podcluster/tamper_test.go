// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
)

// Neither a label of a pod nor those of a revision make a PodCluster forget what the pods below the partition are.
func TestThePartitionOutlivesLabels(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 2, image: a}"))
	cluster = s.awaitReady(s.change(cluster, `{"image": "b", "updateStrategy": {"partition": 1}}`))
	old, update := cluster.Status.CurrentRevision, cluster.Status.UpdateRevision
	before := s.pod("web-0")
	s.patch(s.pod("web-0"), `{"metadata": {"labels": {"controller-revision-hash": "`+strings.TrimPrefix(update, "web-")+`"}}}`)
	fleettest.Await(t, s, s.podNamed("web-0"), func(pod *corev1.Pod) string {
		if hash := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; "web-"+hash != old {
			return "its revision is " + hash
		}
		return ""
	})
	for _, patch := range []string{
		`{"metadata": {"labels": {"app.kubernetes.io/instance": null}}}`,
		`{"metadata": {"labels": null}}`,
		`{"metadata": {"labels": null, "ownerReferences": null}}`,
	} {
		s.patch(s.revision(old), patch)
		fleettest.Await(t, s, s.revision(old), func(live *appsv1.ControllerRevision) string {
			if live.Labels[flow.LabelInstance] != "web" || live.Labels[flow.LabelManagedBy] == "" || !metav1.IsControlledBy(live, cluster) {
				return fmt.Sprintf("it is %+v", live.ObjectMeta)
			}
			return ""
		})
	}
	cluster = s.awaitReady(cluster)
	if status := cluster.Status; status.CurrentRevision != old || status.UpdateRevision != update || status.UpdatedReplicas != 1 || s.pod("web-0").UID != before.UID {
		t.Errorf("the status is %+v", status)
	}
	s.delete(before)
	s.awaitSuccessor(before)
	s.awaitReady(cluster)
	s.awaitImages("web", "web-0=a web-1=b")
}

// A request like that of kubectl replace leaves out what the manifest does not have.
func TestAPodThatIsReplacedByARequest(t *testing.T) {
	s := newStage(t)
	cluster := s.awaitReady(s.create("web", "{podReplicas: 1, image: a, updateStrategy: {type: OnDelete}}"))
	before := s.pod("web-0")
	bare := before.DeepCopy()
	bare.Labels, bare.OwnerReferences, bare.ManagedFields, bare.ResourceVersion = map[string]string{"app": "mine"}, nil, nil, ""
	if err := s.Update(t.Context(), bare, client.FieldOwner("kubectl-replace")); err != nil {
		t.Fatal(err)
	}
	fleettest.Await(t, s, s.podNamed("web-0"), func(pod *corev1.Pod) string {
		if pod.UID != before.UID {
			t.Fatal("the pod was replaced")
		}
		for name, value := range before.Labels {
			if pod.Labels[name] != value {
				return fmt.Sprintf("its labels are %v", pod.Labels)
			}
		}
		if !metav1.IsControlledBy(pod, cluster) {
			return "it is not controlled by its PodCluster"
		}
		return ""
	})
	s.awaitReady(cluster)
}

// Nothing but its name finds a pod that has lost its labels, and that is too many when the PodCluster goes on.
func TestASurplusPodOfASuspendedPodCluster(t *testing.T) {
	for name, patch := range map[string]string{
		"hidden":   `{"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}`,
		"released": `{"metadata": {"labels": null, "ownerReferences": null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			cluster := s.awaitReady(s.create("web", "{podReplicas: 3, image: a}"))
			s.await(s.change(cluster, `{"suspend": true}`), func(cluster *kubegroupv1.PodCluster) string {
				if status := cluster.Status.Conditions[0].Status; status != metav1.ConditionUnknown {
					return "Ready is " + string(status)
				}
				return ""
			})
			s.patch(s.pod("web-2"), patch)
			s.change(cluster, `{"podReplicas": 2}`)
			s.awaitReady(s.change(cluster, `{"suspend": false}`))
			var pods corev1.PodList
			if err := s.List(t.Context(), &pods, client.InNamespace(s.namespace)); err != nil {
				t.Fatal(err)
			}
			if len(pods.Items) != 2 {
				t.Errorf("there are %d pods", len(pods.Items))
			}
		})
	}
}
