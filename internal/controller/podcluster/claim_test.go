// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := kubegroupv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// newPasses returns a function that runs a part of a pass. All of them share what the controller remembers.
func newPasses(t *testing.T, r *Reconciler, cluster *kubegroupv1.PodCluster) func(part func(context.Context, *scope)) {
	t.Helper()
	kind := r.Kind()
	whole := &flow.Reconciler[*kubegroupv1.PodCluster]{
		Kind: kind, Client: r.Client, Reader: r.Reader, Events: events.NewFakeRecorder(100), Clock: clocktesting.NewFakePassiveClock(noon),
	}
	return func(part func(context.Context, *scope)) {
		t.Helper()
		whole.Kind.Reconcile = func(ctx context.Context, pass *flow.Pass, cluster *kubegroupv1.PodCluster) error {
			part(ctx, &scope{cluster: cluster, pass: pass})
			return nil
		}
		if _, err := whole.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cluster)}); err != nil {
			t.Fatal(err)
		}
	}
}

// Another controller removes the owner reference of a pod again and again.
func TestPodsAreNotAdoptedWithoutEnd(t *testing.T) {
	cluster := clusterOf(t, "{podReplicas: 1}")
	orphan := newPod(t, cluster.Name, 0, "v1", "")
	orphan.Namespace, orphan.UID, orphan.ManagedFields = cluster.Namespace, "orphan", ownFieldsOf(ownsLabel)
	maps.Copy(orphan.Labels, selector(cluster))
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster, orphan).WithStatusSubresource(cluster).
		WithReturnManagedFields().WithIndex(&corev1.Pod{}, clusterIndex, clusterKeys).Build()
	r := &Reconciler{Client: server, Reader: server}
	pass := newPasses(t, r, cluster)
	for range 30 {
		live := &corev1.Pod{}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(orphan), live); err != nil {
			t.Fatal(err)
		}
		live.OwnerReferences = nil
		if err := server.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		var err, contested error
		pass(func(ctx context.Context, s *scope) {
			err = r.findPods(ctx, s)
			contested = s.contested
		})
		if err != nil {
			t.Fatal(err)
		}
		if contested != nil {
			if flow.Reason(contested) != flow.ReasonContested {
				t.Errorf("the outcome is %v", contested)
			}
			return
		}
	}
	t.Error("it is adopted without end")
}

// Whether a pod with one of the names and other labels is adopted is up to the user.
func TestForeignPodsAreAdoptedOnRequest(t *testing.T) {
	for _, test := range []struct {
		name       string
		annotation string
		edit       func(*corev1.Pod)
		adopts     bool
	}{
		{"it is asked for", "true", func(*corev1.Pod) {}, true},
		{"it is not asked for", "", func(*corev1.Pod) {}, false},
		{"it was replaced by a request that left out what is ours", "", func(p *corev1.Pod) { p.ManagedFields = ownFieldsOf(ownsRest) }, true},
		{"we have changed it, but did not create it", "", func(p *corev1.Pod) { p.ManagedFields = ownFieldsOf(ownsOwners) }, false},
		{"a reference to the PodCluster is left", "", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubegroup.generals.space/v1", Kind: "PodCluster", Name: "web", UID: "1234"}}
		}, true},
		{"another controller has taken one of ours", "", func(p *corev1.Pod) {
			p.ManagedFields = ownFieldsOf(ownsRest)
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a", UID: "a", Controller: new(true)}}
		}, false},
		{"it is denied", "false", func(*corev1.Pod) {}, false},
		{"another controller has it", "true", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a", UID: "a", Controller: new(true)}}
		}, false},
		{"it is on its way out", "true", func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: noon}, []string{"example.com/wait"}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := clusterOf(t, "{podReplicas: 1}")
			cluster.Annotations = map[string]string{flow.AdoptAnnotation: test.annotation}
			foreign := newPod(t, cluster.Name, 0, "theirs", "")
			foreign.Namespace, foreign.UID = cluster.Namespace, "foreign"
			foreign.Labels = map[string]string{"app": "other", labelRevision: "theirs"}
			test.edit(foreign)
			server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster, foreign).WithStatusSubresource(cluster).WithReturnManagedFields().Build()
			r := &Reconciler{Client: server, Reader: server}
			var done outcome
			newPasses(t, r, cluster)(func(ctx context.Context, s *scope) {
				done = r.createPod(ctx, s, action{verb: create, revision: newRevision("v1")})
			})
			live := &corev1.Pod{}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(foreign), live); err != nil {
				t.Fatal(err)
			}
			if live.UID != foreign.UID || metav1.IsControlledBy(live, cluster) != test.adopts || (flow.Reason(done.err) == "Comparing") != test.adopts {
				t.Fatalf("the outcome is %+v, and the pod %+v", done, live.ObjectMeta)
			}
			if !test.adopts {
				return
			}
			want := identity(cluster)
			want["app"], want[labelOrdinal] = "other", "0"
			if !maps.Equal(live.Labels, want) || done.member == nil || done.change != "Adopted Pod "+foreign.Name {
				t.Errorf("the labels are %v, and the outcome is %+v", live.Labels, done)
			}
		})
	}
}

// The cache says that the PodCluster is there. What the server says counts.
func TestAdoptionAsksTheServer(t *testing.T) {
	scheme := newScheme(t)
	cached := clusterOf(t, "{podReplicas: 1}")
	deleted, another := cached.DeepCopy(), cached.DeepCopy()
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: noon}, []string{metav1.FinalizerOrphanDependents}
	another.UID = "5678"
	for _, test := range []struct {
		name   string
		server []client.Object
		adopts bool
	}{
		{"it is there", []client.Object{cached.DeepCopy()}, true},
		{"it is gone", nil, false},
		{"it is being deleted", []client.Object{deleted}, false},
		{"another one has its name", []client.Object{another}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			orphan := newPod(t, cached.Name, 0, "v1", "")
			orphan.Namespace = cached.Namespace
			maps.Copy(orphan.Labels, selector(cached))
			r := &Reconciler{
				Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(orphan, cached.DeepCopy()).WithStatusSubresource(cached).
					WithIndex(&corev1.Pod{}, clusterIndex, clusterKeys).Build(),
				Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.server...).Build(),
			}
			var s *scope
			var err error
			newPasses(t, r, cached)(func(ctx context.Context, pass *scope) {
				s, err = pass, r.findPods(ctx, pass)
			})
			if test.adopts != (err == nil) || flow.IsWaiting(err) == test.adopts {
				t.Errorf("the outcome is %v", err)
			}
			live := &corev1.Pod{}
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(orphan), live); err != nil {
				t.Fatal(err)
			}
			if metav1.IsControlledBy(live, cached) != test.adopts || (len(s.world.members) == 1) != test.adopts {
				t.Errorf("the pod's owners are %v", live.OwnerReferences)
			}
		})
	}
}

// A reference to the PodCluster that is no controller reference becomes one, and there is no second one for the same owner.
func TestAReferenceIsNotRepeated(t *testing.T) {
	cluster := clusterOf(t, "{podReplicas: 1}")
	orphan := newPod(t, cluster.Name, 0, "v1", "")
	orphan.Namespace = cluster.Namespace
	maps.Copy(orphan.Labels, selector(cluster))
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"}
	broken := controllerRef(cluster)
	broken.Controller = new(false)
	orphan.OwnerReferences = []metav1.OwnerReference{broken, other}
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster, orphan).WithStatusSubresource(cluster).
		WithIndex(&corev1.Pod{}, clusterIndex, clusterKeys).Build()
	r := &Reconciler{Client: server, Reader: server}
	var found world
	newPasses(t, r, cluster)(func(ctx context.Context, s *scope) {
		if err := r.findPods(ctx, s); err != nil {
			t.Fatal(err)
		}
		found = s.world
	})
	if got := found.members[0].pod.OwnerReferences; !apiequality.Semantic.DeepEqual(got, []metav1.OwnerReference{controllerRef(cluster), other}) {
		t.Errorf("the references are %+v", got)
	}
}
