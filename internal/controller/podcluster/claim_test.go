// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
)

// The cache says that the PodCluster is there. What the server says counts.
func TestAdoptionAsksTheServer(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := kubegroupv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
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
				Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(orphan).WithIndex(&corev1.Pod{}, podIndex, podIndexKeys).Build(),
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
