// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opdock/opdock/internal/flow"
)

// The fake server keeps managed fields with the code of the real one, so their text is the same.
func TestWhatTheServerRecords(t *testing.T) {
	const other = client.FieldOwner("kubectl-edit")
	for _, test := range []struct {
		name                     string
		edit                     func(*corev1.Pod)
		label, created, injected bool
	}{
		{"nothing else", func(*corev1.Pod) {}, true, true, false},
		{"another label", func(p *corev1.Pod) { p.Labels["note"] = "theirs" }, true, true, false},
		{"the label of the revision", func(p *corev1.Pod) { p.Labels[labelRevision] = "v2" }, false, true, false},
		{"all metadata", func(p *corev1.Pod) { p.Labels, p.OwnerReferences = nil, nil }, false, true, false},
		{"our image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil" }, true, true, false},
		{"the image of the injected container", func(p *corev1.Pod) { p.Spec.Containers[1].Image = "evil" }, true, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := clusterOf(t, "{}")
			server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithReturnManagedFields().Build()
			pod, err := podOf(cluster, newRevision("v1"), 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Create(t.Context(), pod, fieldOwner); err != nil {
				t.Fatal(err)
			}
			// Admission adds a container, for which no manager is recorded.
			records := pod.ManagedFields
			injected(pod)
			if err := server.Update(t.Context(), pod, client.FieldOwner("admission")); err != nil {
				t.Fatal(err)
			}
			pod.ManagedFields = records
			if err := server.Update(t.Context(), pod, other); err != nil {
				t.Fatal(err)
			}
			test.edit(pod)
			if err := server.Update(t.Context(), pod, other); err != nil {
				t.Fatal(err)
			}
			changed := setter(pod, "spec", "containers", fieldpath.KeyByFields("name", "injected"), "image") != ""
			if ownsText(pod, revisionText) != test.label || isCreatedByUs(pod) != test.created || changed != test.injected || isCleared(pod) {
				t.Errorf("the label is ours: %v, the pod: %v, the injected image was changed: %v, the records are cleared: %v: %s",
					ownsText(pod, revisionText), isCreatedByUs(pod), changed, isCleared(pod), pod.ManagedFields)
			}
		})
	}
}

// A pod that was restored from a backup becomes ours only as far as we change it.
func TestWhatTheServerRecordsOfARestoredPod(t *testing.T) {
	cluster := clusterOf(t, "{}")
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithReturnManagedFields().Build()
	pod, err := podOf(cluster, newRevision("v1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	pod.OwnerReferences = nil
	if err := server.Create(t.Context(), pod, client.FieldOwner("velero-server")); err != nil {
		t.Fatal(err)
	}
	pod.OwnerReferences, pod.Spec.Containers[0].Image = []metav1.OwnerReference{controllerRef(cluster)}, "image:2"
	if err := server.Update(t.Context(), pod, fieldOwner); err != nil {
		t.Fatal(err)
	}
	if len(ownFields(pod)) == 0 || isCreatedByUs(pod) || ownsText(pod, revisionText) || isCleared(pod) {
		t.Errorf("the records are %s", pod.ManagedFields)
	}
}

// The reference is restored by a patch that the server merges.
func TestTheOwnerReferenceIsRestored(t *testing.T) {
	cluster := clusterOf(t, "{podReplicas: 1}")
	pod := newPod(t, cluster.Name, 0, "v1", "")
	pod.Namespace = cluster.Namespace
	broken := controllerRef(cluster)
	broken.BlockOwnerDeletion, broken.Name = new(false), "elsewhere"
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"}
	pod.OwnerReferences = []metav1.OwnerReference{broken, other}
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster, pod).WithStatusSubresource(cluster).Build()
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: server, Reader: server}
	m := memberOf(cluster.Name, pod)
	m.drift = driftOf(&flow.Pass{}, pod, belongingTo(cluster), nil)
	var done outcome
	newPasses(t, r, cluster)(func(ctx context.Context, s *scope) {
		done = r.labelPod(ctx, s, action{verb: label, member: m})
	})
	live := &corev1.Pod{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(pod), live); err != nil {
		t.Fatal(err)
	}
	if !done.restored || len(live.OwnerReferences) != 2 || !hasReference(live, controllerRef(cluster)) || !hasReference(live, other) {
		t.Errorf("the outcome is %+v, and the references are %+v", done, live.OwnerReferences)
	}
}
