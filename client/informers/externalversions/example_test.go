// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package externalversions_test

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	"github.com/opdock/opdock/client/clientset/versioned"
	"github.com/opdock/opdock/client/informers/externalversions"
	collectorlisters "github.com/opdock/opdock/client/listers/collector/v1"
)

// An informer tells what happens to objects and keeps them in memory, where a lister reads them.
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := watchCollectors(ctx, client); err != nil {
		fmt.Println(err)
	}

	// Output:
	// added: frontend
	// updated: frontend, suspended: true
	// the lister knows 1, suspended: true
	// deleted: frontend
}

func watchCollectors(ctx context.Context, client versioned.Interface) error {
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace("default"))
	collectors := factory.Collector().V1().Collectors()

	happened := make(chan string, 10)
	_, err := collectors.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(added any) {
			happened <- "added: " + added.(*collectorv1.Collector).Name
		},
		UpdateFunc: func(_, updated any) {
			collector := updated.(*collectorv1.Collector)
			happened <- fmt.Sprintf("updated: %s, suspended: %t", collector.Name, collector.Spec.Suspend)
		},
		DeleteFunc: func(deleted any) {
			// This is not always a Collector: if the watch was interrupted, it is a cache.DeletedFinalStateUnknown.
			name, err := cache.DeletionHandlingObjectToName(deleted)
			if err != nil {
				happened <- err.Error()
				return
			}
			happened <- "deleted: " + name.Name
		},
	})
	if err != nil {
		return fmt.Errorf("adding the handler: %w", err)
	}

	// Shutdown waits until the informers have ended, which they do when their context does.
	defer factory.Shutdown()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// This starts the informers that were asked for above, and no others.
	factory.StartWithContext(ctx)
	if synced := factory.WaitForCacheSyncWithContext(ctx); synced.Err != nil {
		return fmt.Errorf("reading all objects: %w", synced.AsError())
	}

	return changeAndPrint(ctx, client, collectors.Lister().Collectors("default"), happened)
}

func changeAndPrint(ctx context.Context, client versioned.Interface, lister collectorlisters.CollectorNamespaceLister, happened <-chan string) error {
	collectors := client.CollectorV1().Collectors("default")
	next := func() {
		select {
		case event := <-happened:
			fmt.Println(event)
		case <-ctx.Done():
			fmt.Println("nothing has happened:", ctx.Err())
		}
	}

	_, err := collectors.Create(ctx, &collectorv1.Collector{
		ObjectMeta: metav1.ObjectMeta{Name: "frontend"},
		Spec:       collectorv1.CollectorSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "frontend"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a Collector: %w", err)
	}
	next()

	patch := []byte(`{"spec": {"suspend": true}}`)
	if _, err := collectors.Patch(ctx, "frontend", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("suspending the Collector: %w", err)
	}
	next()

	// This asks the memory and not the API server. What it returns belongs to the informer: copy it before changing it.
	known, err := lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	for _, collector := range known {
		fmt.Printf("the lister knows %d, suspended: %t\n", len(known), collector.Spec.Suspend)
	}

	if err := collectors.Delete(ctx, "frontend", metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting the Collector: %w", err)
	}
	next()
	return nil
}
