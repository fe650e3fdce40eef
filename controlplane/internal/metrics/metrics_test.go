// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/metrics/pkg/apis/metrics"

	"github.com/opdock/opdock/controlplane/internal/usage"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func pod(name, node string, phase corev1.PodPhase, usages, owner string) *corev1.Pod {
	started := metav1.NewTime(now.Add(-time.Minute))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": owner}, Annotations: map[string]string{usage.Annotation: usages},
		},
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{Phase: phase, StartTime: &started},
	}
	if owner != "" {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Name: owner, UID: types.UID(owner), Controller: &yes}}
	}
	return p
}

func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}

func sourceOf(t *testing.T, objects ...any) source {
	t.Helper()
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, object := range objects {
		store := nodes
		if _, isPod := object.(*corev1.Pod); isPod {
			store = pods
		}
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return source{pods: corelisters.NewPodLister(pods), nodes: corelisters.NewNodeLister(nodes), now: func() time.Time { return now }}
}

func TestPods(t *testing.T) {
	storage := podStorage{sourceOf(t,
		node("up", corev1.ConditionTrue), node("lost", corev1.ConditionUnknown),
		pod("alone", "up", corev1.PodRunning, "cpu=100m", ""),
		pod("web-0", "up", corev1.PodRunning, "cpu=1,shared", "web"),
		pod("web-1", "up", corev1.PodRunning, "cpu=1,shared", "web"),
		pod("pending", "up", corev1.PodPending, "", "web"),
		pod("silent", "lost", corev1.PodRunning, "cpu=1", "web"),
	)}
	ctx := genericapirequest.WithNamespace(context.Background(), "shop")
	listed, err := storage.List(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	items := listed.(*metrics.PodMetricsList).Items
	got := map[string]string{}
	for _, item := range items {
		got[item.Name] = item.Containers[0].Usage.Cpu().String()
	}
	want := map[string]string{"alone": "100m", "web-0": "500m", "web-1": "500m"}
	for name, cpu := range want {
		if got[name] != cpu {
			t.Errorf("%s uses %q, want %s", name, got[name], cpu)
		}
	}
	if len(got) != len(want) || items[0].Name != "alone" {
		t.Errorf("listed %v", got)
	}

	selected, err := storage.List(ctx, &internalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"app": "web"})})
	if err != nil || len(selected.(*metrics.PodMetricsList).Items) != 2 {
		t.Errorf("selected %v, %v", selected, err)
	}
	elsewhere, err := storage.List(genericapirequest.WithNamespace(context.Background(), "other"), nil)
	if err != nil || len(elsewhere.(*metrics.PodMetricsList).Items) != 0 {
		t.Errorf("elsewhere: %v, %v", elsewhere, err)
	}
	one, err := storage.Get(ctx, "web-0", nil)
	if err != nil || one.(*metrics.PodMetrics).Containers[0].Usage.Cpu().String() != "500m" {
		t.Errorf("one: %v, %v", one, err)
	}
	if _, err := storage.Get(ctx, "silent", nil); !apierrors.IsNotFound(err) {
		t.Errorf("a pod of a lost node: %v", err)
	}
}

func TestNodes(t *testing.T) {
	storage := nodeStorage{sourceOf(t,
		node("up", corev1.ConditionTrue), node("idle", corev1.ConditionTrue), node("lost", corev1.ConditionUnknown),
		pod("a", "up", corev1.PodRunning, "cpu=100m,memory=1Gi", ""),
		pod("b", "up", corev1.PodRunning, "cpu=250m,memory=1Gi", ""),
		pod("c", "lost", corev1.PodRunning, "cpu=1", ""),
	)}
	listed, err := storage.List(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	items := listed.(*metrics.NodeMetricsList).Items
	if len(items) != 2 || items[0].Name != "idle" || !items[0].Usage.Cpu().IsZero() || items[1].Usage.Cpu().String() != "350m" || items[1].Usage.Memory().String() != "2Gi" {
		t.Errorf("listed %+v", items)
	}
	if _, err := storage.Get(context.Background(), "lost", nil); !apierrors.IsNotFound(err) {
		t.Errorf("a lost node: %v", err)
	}
}
