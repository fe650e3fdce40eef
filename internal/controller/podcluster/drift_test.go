// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

// records play the server's: which fields are still ours, and which ones others have set.
type records struct {
	ours    map[string]bool
	foreign map[string]string
}

func (r records) OwnsField(_ client.Object, path ...any) bool {
	return r.ours[fmt.Sprint(path[len(path)-1])]
}

func (r records) ForeignFields(client.Object, string) map[string]string { return r.foreign }

func TestDriftOf(t *testing.T) {
	otherRef := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"}
	ringRef := metav1.OwnerReference{
		APIVersion: "kubegroup.generals.space/v1", Kind: "PodCluster", Name: "ring", UID: "ring", Controller: new(true), BlockOwnerDeletion: new(true),
	}
	template := &sharedv1.PodTemplate{
		Metadata: &sharedv1.PodMetadata{Labels: map[string]string{"tier": "ring", labelOrdinal: "7"}, Annotations: map[string]string{"note": "mine"}},
		Spec: sharedv1.PodSpec{
			Containers:     []sharedv1.Container{{Name: "main", Image: "nginx"}},
			InitContainers: []sharedv1.Container{{Name: "first", Image: "busybox"}},
		},
	}
	for _, test := range []struct {
		name     string
		edit     func(*corev1.Pod)
		records  records
		want     string
		metadata bool
		spec     bool
	}{
		{name: "as it was made", edit: func(*corev1.Pod) {}},
		{
			name: "another label", edit: func(p *corev1.Pod) { p.Labels["tier"] = "evil" },
			want: "metadata.labels.tier was changed", metadata: true,
		},
		{
			name: "another label of the PodCluster", edit: func(p *corev1.Pod) { p.Labels[flow.LabelInstance] = "mine" },
			want: "metadata.labels.app.kubernetes.io/instance was changed", metadata: true,
		},
		{
			name: "no labels", edit: func(p *corev1.Pod) { p.Labels = nil },
			want: "metadata.labels.app.kubernetes.io/instance was changed, metadata.labels.tier was changed", metadata: true,
		},
		{
			name: "an owner reference that blocks nothing", edit: func(p *corev1.Pod) { p.OwnerReferences[1].BlockOwnerDeletion = new(false) },
			want: "metadata.ownerReferences was changed", metadata: true,
		},
		{
			name: "an owner reference with another name", edit: func(p *corev1.Pod) { p.OwnerReferences[1].Name = "elsewhere" },
			want: "metadata.ownerReferences was changed", metadata: true,
		},
		{
			name: "an owner reference of another version", edit: func(p *corev1.Pod) { p.OwnerReferences[1].APIVersion = "kubegroup.generals.space/v2" },
			want: "metadata.ownerReferences was changed", metadata: true,
		},
		{name: "another owner more", edit: func(p *corev1.Pod) {
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{UID: "third"})
		}},
		{
			name: "no annotation", edit: func(p *corev1.Pod) { p.Annotations = nil },
			want: "metadata.annotations.note was changed", metadata: true,
		},
		{
			name: "another image", edit: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil" },
			records: records{foreign: map[string]string{"spec.containers[].image": "kubectl-set"}},
			want:    "spec.containers[main].image was changed by kubectl-set", spec: true,
		},
		{
			name: "another image of an init container", edit: func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "evil" },
			want: "spec.initContainers[first].image was changed", spec: true,
		},
		{
			name: "an image that admission chose", edit: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "mirror/nginx" },
			records: records{ours: map[string]bool{"image": true}},
		},
		{
			name: "another image of an injected container", records: records{foreign: map[string]string{"spec.containers[].image": "kubectl-set"}},
			edit: func(p *corev1.Pod) {
				p.Spec.Containers[1].Image = "evil"
				p.ManagedFields = append(ownFieldsOf(ownsLabel), fieldsOf("kubectl-set", `{"f:spec":{"f:containers":{"k:{\"name\":\"injected\"}":{"f:image":{}}}}}`))
			},
			want: "spec.containers[injected].image was changed by kubectl-set", spec: true,
		},
		{
			name: "a container that another writer has restored from a backup", records: records{foreign: map[string]string{"spec.containers[].image": "velero"}},
			edit: func(p *corev1.Pod) {
				p.ManagedFields = append(ownFieldsOf(ownsOwners), fieldsOf("velero", `{"f:spec":{"f:containers":{"k:{\"name\":\"injected\"}":{".":{},"f:image":{},"f:name":{}}}}}`))
			},
		},
		{
			name: "an added toleration", records: records{foreign: map[string]string{"spec.tolerations": "kubectl-edit"}},
			edit: func(p *corev1.Pod) {
				p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: corev1.TaintNodeNotReady})
			},
			want: "spec.tolerations was changed by kubectl-edit", spec: true,
		},
		{
			name: "another duration of a toleration", records: records{foreign: map[string]string{"spec.tolerations": "kubectl-edit"}},
			edit: func(p *corev1.Pod) { p.Spec.Tolerations[0].TolerationSeconds = new(int64(301)) },
			want: "spec.tolerations was changed by kubectl-edit", spec: true,
		},
		{
			name: "a deadline", records: records{foreign: map[string]string{"spec.activeDeadlineSeconds": "kubectl-edit"}},
			edit: func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(5)) },
			want: "spec.activeDeadlineSeconds was changed by kubectl-edit", spec: true,
		},
		{
			name: "what the server fills in, applied by another manager", edit: func(*corev1.Pod) {},
			records: records{foreign: map[string]string{"spec.tolerations": "applier", "spec.terminationGracePeriodSeconds": "applier"}},
		},
		{name: "what cannot be changed", edit: func(*corev1.Pod) {}, records: records{foreign: map[string]string{"spec.volumes": "velero"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					OwnerReferences: []metav1.OwnerReference{otherRef, ringRef},
					Labels:          map[string]string{"tier": "ring", labelOrdinal: "0", flow.LabelInstance: "ring"},
					Annotations:     map[string]string{"note": "mine"},
				},
				Spec: corev1.PodSpec{
					Containers:     []corev1.Container{{Name: "main", Image: "nginx"}, {Name: "injected", Image: "sidecar"}},
					InitContainers: []corev1.Container{{Name: "first", Image: "busybox"}},
					Tolerations: []corev1.Toleration{
						{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
						{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
					},

					TerminationGracePeriodSeconds: new(int64(30)),
				},
			}
			test.edit(pod)
			found := driftOf(test.records, pod, belonging{labels: map[string]string{flow.LabelInstance: "ring"}, owner: ringRef}, template)
			text := ""
			if found != nil {
				text = found.text()
			}
			if text != test.want || found.ofMetadata() != test.metadata || found.ofSpec() != test.spec {
				t.Errorf("got %q, metadata %v, spec %v", text, found.ofMetadata(), found.ofSpec())
			}
		})
	}
}

func TestDriftIsPlanned(t *testing.T) {
	image := &podDrift{images: map[string]string{"main": "nginx"}, spec: []string{"image"}}
	toleration := &podDrift{lasting: []string{"tolerations"}, spec: []string{"tolerations"}}
	label := &podDrift{labels: map[string]string{"tier": "ring"}, metadata: []string{"label"}}
	for _, test := range []struct {
		name    string
		drift   *podDrift
		inPlace bool
		age     time.Duration
		want    verb
	}{
		{"an image is set back", image, true, time.Hour, mend},
		{"an image is set back at once", image, true, time.Second, mend},
		{"an image where nothing is updated in place", image, false, time.Hour, remove},
		{"a toleration needs another pod", toleration, true, time.Hour, remove},
		{"a toleration of a pod that was just made", toleration, true, time.Second, ""},
		{"a label is set back", label, false, time.Hour, "label"},
	} {
		t.Run(test.name, func(t *testing.T) {
			one := newRevision("v1")
			var members []*member
			for ordinal := range 3 {
				m := memberOf("web", newPod(t, "web", ordinal, "v1", ""))
				m.drift = test.drift
				m.pod.CreationTimestamp.Time = noon.Add(-test.age)
				members = append(members, m)
			}
			got := newPlan(world{
				settings: settings{name: "web", replicas: 3, maxUnavailable: 1, inPlace: test.inPlace, deadline: 1 << 40},
				members:  members, revisions: map[string]*revision{one.hash: one}, update: one, current: one, now: noon,
			})
			if test.want == "" {
				if len(got.actions) > 0 || got.wake.Sub(noon) != youngest-test.age {
					t.Errorf("got %+v", got)
				}
				return
			}
			want := 1
			if test.drift == label {
				want = 3 // no pod is missing because of it
			}
			if len(got.actions) != want || got.actions[0].verb != test.want {
				t.Errorf("got %+v", got.actions)
			}
		})
	}
}

// A correction that waits because another writer reverts each one makes no pod unavailable, so an update does not wait for it.
func TestAContestedPodDoesNotHoldUpAnUpdate(t *testing.T) {
	old, update := newRevision("v1"), newRevision("v2b")
	members := []*member{
		memberOf("web", newPod(t, "web", 0, "v1", "")), memberOf("web", newPod(t, "web", 1, "v1", "")), memberOf("web", newPod(t, "web", 2, "v2b", "")),
	}
	members[2].drift = &podDrift{lasting: []string{"tolerations"}, spec: []string{"tolerations"}}
	for contested, want := range map[bool]string{
		false: "delete 2 (tolerations)",
		true:  "delete 2 (tolerations), delete 1 (another revision)",
	} {
		members[2].specContested = contested
		got := describePlan(newPlan(world{
			settings: settings{name: "web", replicas: 3, maxUnavailable: 1, deadline: 1 << 40},
			members:  members, revisions: map[string]*revision{"v1": old, "v2b": update}, update: update, current: old, now: noon,
		}))
		if got != want {
			t.Errorf("contested is %v, and the plan %q", contested, got)
		}
	}
}
