// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package versioned_test

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/client/clientset/versioned"
)

// An object is created, changed, scaled and deleted.
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
	if err := runShop(context.Background(), client); err != nil {
		fmt.Println(err)
	}

	// Output:
	// shop was created with size 1
	// shop now runs nginx:1.30
	// shop now has size 3
	// shop is gone
}

func runShop(ctx context.Context, client versioned.Interface) error {
	apps := client.AppV1().AppServices("default")

	shop, err := apps.Create(ctx, &appv1.AppService{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: appv1.AppServiceSpec{
			Image: "nginx:1.29",
			Ports: []appv1.ServicePort{{Name: "http", Port: 80}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating the shop: %w", err)
	}
	// What comes back has the defaults, which the API server adds.
	fmt.Printf("%s was created with size %d\n", shop.Name, *shop.Spec.Size)

	// An update is refused if somebody else was faster. Then the change is made to what they have written.
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		shop, err = apps.Get(ctx, "shop", metav1.GetOptions{})
		if err != nil {
			return err
		}
		shop.Spec.Image = "nginx:1.30"
		shop, err = apps.Update(ctx, shop, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("changing the image: %w", err)
	}
	fmt.Printf("%s now runs %s\n", shop.Name, shop.Spec.Image)

	// The scale subresource is the same for all kinds that have a count, whatever they call it.
	scale, err := apps.GetScale(ctx, "shop", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the scale: %w", err)
	}
	scale.Spec.Replicas = 3
	if _, err := apps.UpdateScale(ctx, "shop", scale, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("scaling: %w", err)
	}
	shop, err = apps.Get(ctx, "shop", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the shop: %w", err)
	}
	fmt.Printf("%s now has size %d\n", shop.Name, *shop.Spec.Size)

	if err := apps.Delete(ctx, "shop", metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting the shop: %w", err)
	}
	fmt.Printf("%s is gone\n", shop.Name)
	return nil
}
