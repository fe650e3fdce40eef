// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package applyconfiguration_test

import (
	"context"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	robotac "github.com/opdock/opdock/client/applyconfiguration/robot/v1"
	"github.com/opdock/opdock/client/clientset/versioned"
)

// Two managers share an object. Each applies only the fields that it cares about, and the API server remembers whose
// they are.
func Example() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := shareWelder(context.Background(), client); err != nil {
		fmt.Println(err)
	}

	// Output:
	// factory: 2 replicas of busybox:1.37
	// night-shift: Apply failed with 1 conflict: conflict with "factory": .spec.replicas
	// night-shift, by force: 5 replicas
	// factory still owns the image: true, the replicas: false
	// factory: 5 replicas of busybox:1.38
}

func shareWelder(ctx context.Context, client versioned.Interface) error {
	robots := client.RobotV1().Robots("default")

	// The first to apply an object creates it.
	welder, err := robots.Apply(ctx, robotac.Robot("welder", "default").
		WithSpec(robotac.RobotSpec().WithImage("busybox:1.37").WithReplicas(2)),
		metav1.ApplyOptions{FieldManager: "factory"})
	if err != nil {
		return fmt.Errorf("applying the welder: %w", err)
	}
	fmt.Printf("factory: %d replicas of %s\n", *welder.Spec.Replicas, welder.Spec.Image)

	// Another manager that wants another value for the same field is told so, and may insist.
	more := robotac.Robot("welder", "default").WithSpec(robotac.RobotSpec().WithReplicas(5))
	_, err = robots.Apply(ctx, more, metav1.ApplyOptions{FieldManager: "night-shift"})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("applying other replicas is not a conflict: %w", err)
	}
	fmt.Println("night-shift:", err)
	welder, err = robots.Apply(ctx, more, metav1.ApplyOptions{FieldManager: "night-shift", Force: true})
	if err != nil {
		return fmt.Errorf("applying other replicas by force: %w", err)
	}
	fmt.Printf("night-shift, by force: %d replicas\n", *welder.Spec.Replicas)

	// Who does not remember what it applied extracts it from the object, changes it and applies it again. What is left
	// out would be given up.
	mine, err := robotac.ExtractRobot(welder, "factory")
	if err != nil {
		return fmt.Errorf("extracting: %w", err)
	}
	fmt.Printf("factory still owns the image: %t, the replicas: %t\n", mine.Spec.Image != nil, mine.Spec.Replicas != nil)
	mine.Spec.WithImage("busybox:1.38")
	welder, err = robots.Apply(ctx, mine, metav1.ApplyOptions{FieldManager: "factory"})
	if err != nil {
		return fmt.Errorf("applying another image: %w", err)
	}
	fmt.Printf("factory: %d replicas of %s\n", *welder.Spec.Replicas, welder.Spec.Image)
	return robots.Delete(ctx, "welder", metav1.DeleteOptions{})
}
