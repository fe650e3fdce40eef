// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest_test

import (
	"context"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
)

var setUps atomic.Int32

var base = clustertest.NewBase(func(ctx context.Context, c *cluster.Cluster) error {
	setUps.Add(1)
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fixture"}}, metav1.CreateOptions{})
	return err
})

// TestForks has two tests that would fail each other on a cluster that they shared.
func TestForks(t *testing.T) {
	testenv.ControlPlane(t)
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := kubernetes.NewForConfig(base.Fork(t).Config())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.CoreV1().Namespaces().Get(t.Context(), "fixture", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
			taken := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
			if _, err := client.CoreV1().Namespaces().Create(t.Context(), taken, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
			if got := setUps.Load(); got != 1 {
				t.Errorf("set up %d times", got)
			}
		})
	}
}
