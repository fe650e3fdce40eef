// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/opdock/opdock/cluster"
)

// A private control plane for as long as main runs.
func ExampleStart() {
	c, err := cluster.Start(context.Background(), cluster.Options{Nodes: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Stop()

	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(nodes.Items), "nodes")
}

// A persistent control plane, with progress.
func ExampleStart_detached() {
	c, err := cluster.Start(context.Background(), cluster.Options{
		Name:     "dev",
		Detach:   true,
		Progress: func(p cluster.Progress) { fmt.Println(p.Elapsed, p.Message) },
	})
	var refused *cluster.StartError
	if errors.As(err, &refused) && refused.Reason == cluster.ReasonLocked {
		// It is running already, which is just as well.
		c, err = cluster.Open("dev")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("export KUBECONFIG=" + c.Kubeconfig())
}

// A kubeconfig with the identity that an operator has in production.
func ExampleCluster_As() {
	c, err := cluster.Open("dev")
	if err != nil {
		fmt.Println(err)
		return
	}
	operator, err := c.As("system:serviceaccount:shop:operator")
	if err != nil {
		fmt.Println(err)
		return
	}
	kubeconfig, err := operator.Kubeconfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = os.Stdout.Write(kubeconfig)
}
