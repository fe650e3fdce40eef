// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/flow"
)

// Entries of managed fields: what we own of a pod that we created, with the label of its revision and without it, and what
// a program owns that has restored a pod from a backup.
const (
	ownsLabel  = `{"f:metadata":{"f:labels":{".":{},"f:controller-revision-hash":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{}}}}}`
	ownsRest   = `{"f:metadata":{"f:labels":{".":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{}}}}}`
	ownsOwners = `{"f:metadata":{"f:ownerReferences":{".":{}}}}`

	// ownsRenewal is what we own of a pod whose images were changed.
	ownsRenewal = `{"f:metadata":{"f:annotations":{".":{},"f:opdock.dev/in-place-update":{}}}}`
)

func fieldsOf(manager, fields string) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{},
	}
	entry.FieldsV1.SetRawBytes([]byte(fields))
	return entry
}

func ownFieldsOf(fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{fieldsOf(string(fieldOwner), fields)}
}

func injected(p *corev1.Pod) {
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "injected", Image: "proxy"})
}

// A pod follows the revision that we have labelled it with. If another writer has set the label, it follows the one that
// it was created from, and the label is restored, whatever the strategy is.
func TestWhichRevisionAPodFollows(t *testing.T) {
	restored := []metav1.ManagedFieldsEntry{fieldsOf("velero-server", ownsLabel), fieldsOf(string(fieldOwner), ownsOwners)}
	edited := append(ownFieldsOf(`{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:name":{}}}}}`),
		fieldsOf("rival", `{"f:metadata":{"f:labels":{"f:controller-revision-hash":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:image":{}}}}}`))
	for _, test := range []struct {
		name, label string
		entries     []metav1.ManagedFieldsEntry
		edit        func(*corev1.Pod)
		hash, plan  string
	}{
		{name: "the label is ours", label: "v1", entries: ownFieldsOf(ownsLabel), hash: "v1"},
		{name: "the label is ours, and admission has changed the pod", label: "v1", entries: ownFieldsOf(ownsLabel), edit: injected, hash: "v1"},
		{name: "the label was removed", entries: ownFieldsOf(ownsRest), hash: "v1", plan: "label 0"},
		{name: "the label has an unknown value", label: "unknown", entries: ownFieldsOf(ownsRest), hash: "v1", plan: "label 0"},
		{name: "the label has the value of another revision", label: "v2", entries: ownFieldsOf(ownsRest), hash: "v1", plan: "label 0"},
		{name: "another writer has set the right value", label: "v1", entries: ownFieldsOf(ownsRest), hash: "v1"},
		{name: "the value of another revision, and the pod fits none", label: "v2", entries: ownFieldsOf(ownsRest), edit: injected},
		{name: "the value and the image of another revision", label: "v2", entries: edited, edit: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "image:2" }},
		{name: "no label, and the image of another revision", entries: edited, edit: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "image:2" }},
		{name: "restored from a backup", label: "v1", entries: restored, hash: "v1"},
		{name: "restored from a backup, as admission had changed it", label: "v1", entries: restored, edit: injected, hash: "v1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, two := newRevision("v1"), newRevision("v2")
			m := admitted(t, "v1", func(p *corev1.Pod) {
				p.Labels[labelRevision], p.Labels[flow.LabelManagedBy] = test.label, flow.ManagedBy
				p.ManagedFields = test.entries
				if test.edit != nil {
					test.edit(p)
				}
			})
			m.ready = true
			s := &scope{cluster: clusterOf(t, "{podReplicas: 1}"), pass: &flow.Pass{}, world: world{
				settings: settings{name: "web", replicas: 1, maxUnavailable: 1, deadline: 1 << 40, inPlace: true, partition: 1},
				members:  []*member{m}, revisions: map[string]*revision{"v1": one, "v2": two}, update: two, current: one, now: noon,
			}}
			if err := (&Reconciler{}).findDrift(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if got := describePlan(newPlan(s.world)); got != test.plan || m.hash != test.hash {
				t.Errorf("the plan is %q, and it follows %q", got, m.hash)
			}
			if test.plan != "" && m.drift.labels[labelRevision] != test.hash {
				t.Errorf("the drift is %+v", m.drift)
			}
			if stalled := flow.Reason(verdict(&s.world)) == ReasonUnknownRevision; stalled != (test.hash == "") {
				t.Errorf("the outcome is %v", verdict(&s.world))
			}
		})
	}
}

// If no manager is recorded for the spec of a pod, the records were cleared, and the server makes no new ones. Then the pod
// has to fit its revision.
func TestAPodWithoutRecordsIsCompared(t *testing.T) {
	tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "evil"}) }
	for _, test := range []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		edit    func(*corev1.Pod)
		plan    string
	}{
		{"cleared", nil, func(*corev1.Pod) {}, ""},
		{"cleared and changed", nil, tolerant, "delete 0 (" + clearedText + ")"},
		{"cleared, changed, and labelled since", ownFieldsOf(ownsOwners), tolerant, "delete 0 (" + clearedText + ")"},
		{"cleared, and a label is missing", nil, func(p *corev1.Pod) {
			tolerant(p)
			delete(p.Labels, flow.LabelManagedBy)
		}, "label 0"},
		{"admission has changed it", ownFieldsOf(ownsLabel), tolerant, ""},
		{"another manager has created it", []metav1.ManagedFieldsEntry{fieldsOf("velero-server", ownsLabel)}, injected, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := admitted(t, "v1", func(p *corev1.Pod) {
				p.Labels[labelRevision], p.Labels[flow.LabelManagedBy] = "v1", flow.ManagedBy
				p.ManagedFields = test.entries
				test.edit(p)
			})
			m.ready = true
			one := newRevision("v1")
			s := &scope{cluster: clusterOf(t, "{podReplicas: 1}"), pass: &flow.Pass{}, world: world{
				settings: settings{name: "web", replicas: 1, maxUnavailable: 1, deadline: 1 << 40, inPlace: true, onDelete: true},
				members:  []*member{m}, revisions: map[string]*revision{"v1": one}, update: one, current: one, now: noon,
			}}
			if err := (&Reconciler{}).findDrift(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if got := describePlan(newPlan(s.world)); got != test.plan {
				t.Errorf("the plan is %q", got)
			}
		})
	}
}

// A write that only gives a pod the label of its number does not make the label of its revision ours.
func TestALabelOfTheNumberDoesNotConfirmTheRevision(t *testing.T) {
	cluster := clusterOf(t, "{podReplicas: 1}")
	pod := newPod(t, cluster.Name, 0, "v2", "")
	pod.Namespace = cluster.Namespace
	delete(pod.Labels, labelOrdinal)
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster, pod).WithStatusSubresource(cluster).Build()
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	unknown := memberOf(cluster.Name, pod)
	unknown.hash = "" // as findDrift has found out
	unknown.drift = &podDrift{labels: map[string]string{labelOrdinal: "0"}, metadata: []string{"label"}}
	r := &Reconciler{Client: server, Reader: server}
	newPasses(t, r, cluster)(func(ctx context.Context, s *scope) {
		done := r.labelPod(ctx, s, action{verb: label, member: unknown})
		if done.err != nil || done.member == nil || done.member.pod.Labels[labelOrdinal] != "0" || done.member.hash != "" {
			t.Errorf("the outcome is %+v", done)
		}
	})
}

func TestForeignImages(t *testing.T) {
	const ours, theirs = `{"f:spec":{"f:%s":{"k:{\"name\":\"main\"}":{".":{},"f:name":{}}}}}`, `{"f:spec":{"f:%s":{"k:{\"name\":\"main\"}":{"f:image":{}}}}}`
	for list, add := range map[string]func(*corev1.PodSpec){
		"containers":     func(s *corev1.PodSpec) { s.Containers = []corev1.Container{{Name: "main"}} },
		"initContainers": func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "main"}} },
	} {
		pod := &corev1.Pod{}
		add(&pod.Spec)
		pod.ManagedFields = ownFieldsOf(fmt.Sprintf(ours, list))
		if hasForeignImage(pod) {
			t.Errorf("%s: no other manager has set the image", list)
		}
		pod.ManagedFields = append(pod.ManagedFields, fieldsOf("rival", fmt.Sprintf(theirs, list)))
		if !hasForeignImage(pod) {
			t.Errorf("%s: the image of another manager is not seen", list)
		}
	}
}
