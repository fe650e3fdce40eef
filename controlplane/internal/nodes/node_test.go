// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestNodeObjectIsReadyAndHasRoomForAThousandPods(t *testing.T) {
	node := NodeObject(3)
	if !AnyReady([]corev1.Node{*node}) {
		t.Error("the node is not ready")
	}
	if pods := node.Status.Allocatable.Pods().Value(); pods < 1000 {
		t.Errorf("room for %d pods", pods)
	}
	if node.Labels[corev1.LabelHostname] != "node-3" {
		t.Errorf("labels are %v", node.Labels)
	}
}

func TestNodesHaveTheirOwnAddresses(t *testing.T) {
	seen := map[string]int{}
	for i := range 1000 {
		ip := hostIP(NodeObject(i))
		if other, taken := seen[ip]; taken {
			t.Fatalf("nodes %d and %d both have %s", other, i, ip)
		}
		seen[ip] = i
	}
}

func TestNodeNumber(t *testing.T) {
	for name, want := range map[string]int{"node-0": 0, "node-17": 17} {
		if got, ok := nodeNumber(name); !ok || got != want {
			t.Errorf("nodeNumber(%q) = %d, %t; want %d", name, got, ok, want)
		}
	}
	for _, name := range []string{"node-", "node-01", "node--1", "node-x", "17", "mynode-1"} {
		if got, ok := nodeNumber(name); ok {
			t.Errorf("nodeNumber(%q) = %d; want none", name, got)
		}
	}
}

func TestAnyReady(t *testing.T) {
	tainted := NodeObject(0)
	tainted.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	cordoned := NodeObject(0)
	cordoned.Spec.Unschedulable = true
	notReady := nodeWith(condition(corev1.NodeReady, corev1.ConditionFalse))
	lost := nodeWith(condition(corev1.NodeReady, corev1.ConditionUnknown), condition(Lost, corev1.ConditionTrue))
	for name, test := range map[string]struct {
		nodes []corev1.Node
		want  bool
	}{
		"none":                              {nil, false},
		"not seen by the lifecycle control": {[]corev1.Node{*tainted}, false},
		"not ready":                         {[]corev1.Node{*notReady}, false},
		"ready among others":                {[]corev1.Node{*notReady, *NodeObject(1)}, true},
		"cordoned by a user":                {[]corev1.Node{*cordoned}, true},
		"lost on purpose":                   {[]corev1.Node{*lost}, true},
		"lost beside one that will be":      {[]corev1.Node{*lost, *tainted}, false},
	} {
		if got := AnyReady(test.nodes); got != test.want {
			t.Errorf("%s: AnyReady = %t; want %t", name, got, test.want)
		}
	}
}

func TestEnsureLeavesExistingNodesAlone(t *testing.T) {
	existing := NodeObject(1)
	existing.Labels["mine"] = "yes"
	client := fake.NewClientset(existing)
	if err := Ensure(t.Context(), client, 3); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(t.Context(), client, 2); err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 {
		t.Fatalf("%d nodes, %v; want 3", len(list.Items), err)
	}
	for _, node := range list.Items {
		if node.Name == "node-1" && node.Labels["mine"] != "yes" {
			t.Error("node-1 was replaced")
		}
	}
}

func TestEnsureNamesTheFailedNode(t *testing.T) {
	client := fake.NewClientset()
	refused := errors.New("refused")
	client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
	err := Ensure(t.Context(), client, 1)
	if !errors.Is(err, refused) || err.Error() != "creating node-0: refused" {
		t.Errorf("error = %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Ensure(ended, client, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v; want that it was cancelled", err)
	}
}
