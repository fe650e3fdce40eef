// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
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
			server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster, foreign).Build()
			r := &Reconciler{Client: server, Reader: server}
			done := r.createPod(t.Context(), &scope{cluster: cluster, pass: &flow.Pass{}}, action{verb: create, revision: newRevision("v1")})
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
				Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(orphan).WithIndex(&corev1.Pod{}, clusterIndex, clusterKeys).Build(),
				Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.server...).Build(),
			}
			s := &scope{cluster: cached, pass: &flow.Pass{}}
			err := r.findPods(t.Context(), s)
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
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster, orphan).WithIndex(&corev1.Pod{}, clusterIndex, clusterKeys).Build()
	s := &scope{cluster: cluster, pass: &flow.Pass{}}
	if err := (&Reconciler{Client: server, Reader: server}).findPods(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := s.world.members[0].pod.OwnerReferences; !apiequality.Semantic.DeepEqual(got, []metav1.OwnerReference{controllerRef(cluster), other}) {
		t.Errorf("the references are %+v", got)
	}
}
