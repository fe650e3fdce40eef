// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opdock/opdock/internal/flow"
)

// admission gives the objects of a type its own value of a label, and makes pods ready.
type admission struct {
	of client.Object
	// label is the label by which the cache selects objects, unless it is set.
	label string
	// created are pods that requests asked for, and waits how many writes of relabelled objects later reads wait for.
	created []string
	waits   int
}

func (a *admission) relabels(object client.Object) bool {
	return a.of != nil && reflect.TypeOf(object) == reflect.TypeOf(a.of)
}

func (a *admission) relabel(object client.Object) {
	labels := maps.Clone(object.GetLabels())
	labels[cmp.Or(a.label, flow.LabelManagedBy)] = "platform"
	object.SetLabels(labels)
}

// client returns the client of a manager: its cache holds only objects with the label of the fleet.
func (a *admission) client(server client.WithWatch) client.Client {
	return interceptor.NewClient(server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if pod, ok := object.(*corev1.Pod); ok {
				a.created = append(a.created, pod.Name)
				pod.UID = types.UID(fmt.Sprint(pod.Name, "/", len(a.created)))
				pod.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
				pod.Status.Phase = corev1.PodRunning
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: pod.CreationTimestamp}}
			}
			if a.relabels(object) {
				a.relabel(object)
				if !(&client.CreateOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency {
					a.waits++
				}
			}
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := c.Patch(ctx, object, patch, options...); err != nil || !a.relabels(object) {
				return err
			}
			if !(&client.PatchOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency {
				a.waits++
			}
			a.relabel(object)
			return c.Update(ctx, object)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return c.List(ctx, list, append(options, client.MatchingLabels{flow.LabelManagedBy: flow.ManagedBy})...)
		},
	})
}

// The cache never holds an object whose label admission changes, so a read must not wait for it, and the PodCluster says
// why it is not ready.
func TestAdmissionThatChangesTheLabel(t *testing.T) {
	for _, of := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}} {
		t.Run(reflect.TypeOf(of).Elem().Name(), func(t *testing.T) {
			d := newDesk(t, "{podReplicas: 2, image: a}")
			platform := d.admission
			platform.of = of
			for range 4 {
				ready, _, err := d.pass()
				if err == nil || ready.Reason != flow.ReasonLabelChanged || !strings.Contains(ready.Message, `="platform"`) {
					t.Errorf("it is %+v (%v)", ready, err)
				}
			}
			want := []string{"web-0", "web-1"}
			if platform.relabels(&corev1.Pod{}) {
				want = want[:1] // no more of what cannot be watched
			}
			slices.Sort(platform.created)
			if !slices.Equal(platform.created, want) || platform.waits > 1 {
				t.Errorf("pods %v were created, and reads wait for %d writes of objects that no cache gets", platform.created, platform.waits)
			}
			for _, event := range d.events() {
				if strings.Contains(event, "Restored") {
					t.Errorf("the event is %s", event)
				}
			}
			platform.of = nil
			d.settle()
		})
	}
}

// Each pass would restore the other labels, to no avail.
func TestAdmissionThatChangesAnotherLabel(t *testing.T) {
	for _, of := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}} {
		for _, label := range []string{flow.LabelKind, flow.LabelInstance, labelRevision} {
			t.Run(reflect.TypeOf(of).Elem().Name()+" "+label, func(t *testing.T) {
				d := newDesk(t, "{podReplicas: 2, image: a}")
				d.admission.of, d.admission.label = of, label
				_, _, _ = d.pass() // creates the objects
				for range 3 {
					ready, _, err := d.pass()
					if err == nil || ready.Reason != flow.ReasonLabelChanged || !strings.Contains(ready.Message, label+`="platform"`) {
						t.Fatalf("it is %+v (%v)", ready, err)
					}
				}
				if found := strings.Join(d.events(), "; "); strings.Contains(found, flow.ReasonDriftCorrected) || len(d.admission.created) != 2 {
					t.Errorf("pods %v were created, and the events are %s", d.admission.created, found)
				}
				d.admission.of = nil
				d.settle()
			})
		}
	}
}

// The pods are what the spec says apart from that label, so an update can end, and all pods get back what else they lost.
func TestAdmissionThatChangesAnotherLabelDoesNotHoldUpTheEndOfAnUpdate(t *testing.T) {
	d := newDesk(t, "{podReplicas: 2, image: a, updateStrategy: {type: OnDelete}}")
	d.settle()
	d.admission.of, d.admission.label = &corev1.Pod{}, flow.LabelInstance
	d.cluster.Spec.Image = "b"
	if err := d.Update(t.Context(), d.cluster); err != nil {
		t.Fatal(err)
	}
	if err := d.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(d.cluster.Namespace)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _, _ = d.pass()
	}
	if d.cluster.Status.CurrentRevision != d.cluster.Status.UpdateRevision {
		t.Errorf("the update has not ended: %+v", d.cluster.Status)
	}
	var pods corev1.PodList
	if err := d.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		delete(pods.Items[i].Labels, labelOrdinal)
		if err := d.Update(t.Context(), &pods.Items[i], client.FieldOwner("rival")); err != nil {
			t.Fatal(err)
		}
	}
	_, _, _ = d.pass()
	if err := d.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Labels[labelOrdinal] == "" {
			t.Errorf("pod %s has not got its number back", pod.Name)
		}
	}
}

func TestAdmissionThatChangesTheLabelOfAnAdoptedPod(t *testing.T) {
	cluster := clusterOf(t, "{podReplicas: 1}")
	orphan := newPod(t, cluster.Name, 0, "v1", "")
	orphan.Namespace = cluster.Namespace
	maps.Copy(orphan.Labels, identity(cluster))
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster, orphan).WithStatusSubresource(cluster).
		WithIndex(&corev1.Pod{}, clusterIndex, clusterKeys).Build()
	r := &Reconciler{Client: (&admission{of: orphan}).client(server), Reader: server}
	newPasses(t, r, cluster)(func(ctx context.Context, s *scope) {
		if err := r.findPods(ctx, s); flow.Reason(err) != flow.ReasonLabelChanged {
			t.Errorf("the outcome is %v", err)
		}
	})
}
