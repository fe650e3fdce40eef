// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
)

// desk is a PodCluster that is reconciled as a whole, and others edit its objects in between. All passes are at noon.
type desk struct {
	*testing.T
	client.WithWatch

	cluster    *kubegroupv1.PodCluster
	admission  *admission
	reconciler *Reconciler
	whole      *flow.Reconciler[*kubegroupv1.PodCluster]
	recorder   *events.FakeRecorder
	// reads are pods that were read from the server.
	reads []string
}

func newDesk(t *testing.T, spec string) *desk {
	t.Helper()
	cluster := clusterOf(t, spec)
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster).WithStatusSubresource(cluster).WithReturnManagedFields().
		WithIndex(&corev1.Pod{}, clusterIndex, clusterKeys).WithIndex(&appsv1.ControllerRevision{}, clusterIndex, clusterKeys).Build()
	d := &desk{T: t, WithWatch: server, cluster: cluster, admission: &admission{}, recorder: events.NewFakeRecorder(1000)}
	d.start()
	return d
}

// start is a start of the manager, which has forgotten everything.
func (d *desk) start() {
	reader := interceptor.NewClient(d.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*corev1.Pod); is {
				d.reads = append(d.reads, key.Name)
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	d.reconciler = &Reconciler{Client: d.admission.client(d.WithWatch), Reader: reader, Now: func() time.Time { return noon }}
	d.whole = &flow.Reconciler[*kubegroupv1.PodCluster]{
		Kind: d.reconciler.Kind(), Client: d.WithWatch, Reader: d.WithWatch, Events: d.recorder, Clock: clocktesting.NewFakePassiveClock(noon),
	}
}

// pass runs a pass and returns the condition Ready after it.
func (d *desk) pass() (ready *metav1.Condition, result ctrl.Result, err error) {
	d.Helper()
	result, err = d.whole.Reconcile(d.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d.cluster)})
	if err := d.Get(d.Context(), client.ObjectKeyFromObject(d.cluster), d.cluster); err != nil {
		d.Fatal(err)
	}
	return meta.FindStatusCondition(d.cluster.Status.Conditions, "Ready"), result, err
}

// settle runs passes until the PodCluster is ready.
func (d *desk) settle() {
	d.Helper()
	for range 5 {
		if ready, _, err := d.pass(); err == nil && ready != nil && ready.Status == metav1.ConditionTrue {
			return
		}
	}
	d.Fatalf("it is not ready: %+v", d.cluster.Status)
}

func (d *desk) pod() *corev1.Pod {
	d.Helper()
	pod := &corev1.Pod{}
	if err := d.Get(d.Context(), client.ObjectKey{Namespace: d.cluster.Namespace, Name: "web-0"}, pod); err != nil {
		d.Fatal(err)
	}
	return pod
}

// edit changes the pod as another writer.
func (d *desk) edit(change func(*corev1.Pod)) {
	d.Helper()
	pod := d.pod()
	change(pod)
	if err := d.Update(d.Context(), pod, client.FieldOwner("rival")); err != nil {
		d.Fatal(err)
	}
}

// events returns the events since the last call.
func (d *desk) events() (all []string) {
	for {
		select {
		case event := <-d.recorder.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

// Another writer changes a label of a pod that is available otherwise.
func TestAContestedPodIsReported(t *testing.T) {
	for _, label := range []string{flow.LabelInstance, labelOrdinal} {
		t.Run(label, func(t *testing.T) {
			d := newDesk(t, "{podReplicas: 1, image: a}")
			d.settle()
			want := d.pod().Labels[label]
			for range 30 {
				d.edit(func(pod *corev1.Pod) { pod.Labels[label] = "theirs" })
				d.events()
				ready, result, err := d.pass()
				if err != nil {
					t.Fatal(err)
				}
				if ready.Status != metav1.ConditionTrue {
					if ready.Reason != flow.ReasonContested || result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
						t.Errorf("it is %s, and the next pass is after %v", ready.Reason, result.RequeueAfter)
					}
					return
				}
				if got := d.pod().Labels[label]; got != want {
					t.Fatalf("the label is %q, not %q", got, want)
				}
				if found := strings.Join(d.events(), "; "); !strings.Contains(found, flow.ReasonDriftCorrected) || !strings.Contains(found, label) {
					t.Errorf("the events are %s", found)
				}
			}
			t.Error("there is no truce")
		})
	}
}

// A person or a script that tries one value after the other is no rival for a long time.
func TestEditsWithOtherValuesAreCorrected(t *testing.T) {
	for name, edit := range map[string]func(*corev1.Pod, string){
		"label":      func(pod *corev1.Pod, value string) { pod.Labels[flow.LabelInstance] = value },
		"annotation": func(pod *corev1.Pod, value string) { pod.Annotations["note"] = value },
		"owner":      func(pod *corev1.Pod, value string) { pod.OwnerReferences[0].Name = value },
		"image":      func(pod *corev1.Pod, value string) { pod.Spec.Containers[0].Image = value },
	} {
		for _, test := range []struct {
			values string
			want   int
		}{{"other values", 100}, {"the same value", 16}} {
			t.Run(name+" with "+test.values, func(t *testing.T) {
				d := newDesk(t, "{podReplicas: 1, image: a, template: {metadata: {annotations: {note: mine}}}}")
				d.settle()
				for round := range test.want + 1 {
					value := "theirs"
					if test.want == 100 {
						value += strconv.Itoa(round)
					}
					d.edit(func(pod *corev1.Pod) { edit(pod, value) })
					ready, _, err := d.pass()
					if err != nil || (ready.Reason == flow.ReasonContested) != (round == test.want) {
						t.Fatalf("after %d edits it is %s, %v", round+1, ready.Reason, err)
					}
				}
			})
		}
	}
}

// While another writer has its way with a label, the rest of the pod is corrected.
func TestAContestedLabelHidesNoOtherEdit(t *testing.T) {
	d := newDesk(t, "{podReplicas: 1, image: a}")
	d.settle()
	d.edit(func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "evil" })
	for range 40 {
		d.edit(func(pod *corev1.Pod) { delete(pod.Labels, flow.LabelInstance) })
		if _, _, err := d.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if image := d.pod().Spec.Containers[0].Image; image != "a" {
		t.Errorf("the image is %s", image)
	}
	if ready, _, err := d.pass(); err != nil || ready.Reason != flow.ReasonContested || strings.Contains(ready.Message, "image") {
		t.Errorf("the outcome is %+v, %v", ready, err)
	}
}

// The event says who changed the metadata. What was removed has no writer any more.
func TestWritersOfMetadataAreNamed(t *testing.T) {
	d := newDesk(t, "{podReplicas: 1, image: a, template: {metadata: {annotations: {example.com/a.b: c}}}}")
	d.settle()
	for want, edit := range map[string]func(*corev1.Pod){
		"metadata.labels." + flow.LabelInstance + " was changed by rival": func(pod *corev1.Pod) { pod.Labels[flow.LabelInstance] = "mine" },
		"metadata.annotations.example.com/a.b was changed by rival":       func(pod *corev1.Pod) { pod.Annotations["example.com/a.b"] = "d" },
		"metadata.labels." + flow.LabelKind + " was changed":              func(pod *corev1.Pod) { delete(pod.Labels, flow.LabelKind) },
	} {
		d.events()
		d.edit(edit)
		d.settle()
		if found := d.events(); len(found) != 1 || !strings.HasSuffix(found[0], "Restored Pod web-0: "+want) {
			t.Errorf("the events are %q instead of %s", found, want)
		}
	}
}

// A tool that applies an old copy of a pod after each change reverts the metadata and the rest.
func TestARivalOfLabelAndImageIsNotFoughtWithoutEnd(t *testing.T) {
	d := newDesk(t, "{podReplicas: 1, image: a}")
	d.settle()
	corrections := 0
	for range 200 {
		d.edit(func(pod *corev1.Pod) {
			delete(pod.Labels, flow.LabelInstance)
			pod.Spec.Containers[0].Image = "evil"
		})
		if _, _, err := d.pass(); err != nil {
			t.Fatal(err)
		}
		if d.pod().Labels[flow.LabelInstance] != "" || d.pod().Spec.Containers[0].Image == "a" {
			corrections++
		}
	}
	if corrections > 40 {
		t.Errorf("there were %d corrections", corrections)
	}
}

// The metadata is restored first. What is left is not forgotten.
func TestAnEditOfLabelAndImage(t *testing.T) {
	d := newDesk(t, "{podReplicas: 1, image: a}")
	d.settle()
	d.edit(func(pod *corev1.Pod) {
		delete(pod.Labels, flow.LabelInstance)
		pod.Spec.Containers[0].Image = "evil"
	})
	if ready, _, err := d.pass(); err != nil || ready.Status == metav1.ConditionTrue || d.pod().Labels[flow.LabelInstance] == "" {
		t.Errorf("it is %+v (%v)", ready, err)
	}
	if _, _, err := d.pass(); err != nil || d.pod().Spec.Containers[0].Image != "a" {
		t.Errorf("the image is %s (%v)", d.pod().Spec.Containers[0].Image, err)
	}
}
