// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
	robotac "github.com/opdock/opdock/client/applyconfiguration/robot/v1"
	"github.com/opdock/opdock/client/clientset/versioned"
	"github.com/opdock/opdock/client/clientset/versioned/fake"
)

// suspendAll is what the unit test is about. It takes the interface, so it does not know a fake from a real clientset.
func suspendAll(ctx context.Context, client versioned.Interface, namespace string) error {
	robots, err := client.RobotV1().Robots(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing robots: %w", err)
	}
	for _, robot := range robots.Items {
		if robot.Spec.Suspend {
			continue
		}
		suspended := robotac.Robot(robot.Name, namespace).WithSpec(robotac.RobotSpec().WithSuspend(true))
		_, err := client.RobotV1().Robots(namespace).Apply(ctx, suspended, metav1.ApplyOptions{FieldManager: "holidays"})
		if err != nil {
			return fmt.Errorf("suspending %s: %w", robot.Name, err)
		}
	}
	return nil
}

// A fake clientset holds objects in memory, records what is done, and fails when a test wants it to. It merges what
// is applied as the API server does, but it neither validates nor adds defaults.
func Example() {
	ctx := context.Background()
	client := fake.NewClientset(
		&robotv1.Robot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "factory", Name: "painter"},
			Spec:       robotv1.RobotSpec{Suspend: true},
		},
		&robotv1.Robot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "factory", Name: "welder"},
			Spec:       robotv1.RobotSpec{Image: "busybox:1.37"},
		},
	)

	if err := suspendAll(ctx, client, "factory"); err != nil {
		fmt.Println(err)
	}
	for _, action := range client.Actions() {
		fmt.Println(action.GetVerb(), action.GetResource().Resource)
	}
	welder, err := client.RobotV1().Robots("factory").Get(ctx, "welder", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s, suspended: %t\n", welder.Spec.Image, welder.Spec.Suspend)

	client.PrependReactor("list", "robots", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the API server is on holiday")
	})
	fmt.Println(suspendAll(ctx, client, "factory"))

	// Output:
	// list robots
	// patch robots
	// busybox:1.37, suspended: true
	// listing robots: the API server is on holiday
}
