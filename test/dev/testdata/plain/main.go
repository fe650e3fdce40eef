// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// An operator without controller-runtime: it writes into each Buoy how often it was seen.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var buoys = schema.GroupVersionResource{Group: "plain.example.com", Version: "v1", Resource: "buoys"}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the kubeconfig to use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	// Nothing but the flag says where the cluster is.
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(config)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(buoys).Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(seen any) { mark(ctx, client, seen) }})
	if err != nil {
		log.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	log.Print("Started workers")
	<-ctx.Done()
}

func mark(ctx context.Context, client dynamic.Interface, seen any) {
	buoy := seen.(*unstructured.Unstructured).DeepCopy()
	buoy.SetAnnotations(map[string]string{"plain.example.com/colour": "red"})
	if _, err := client.Resource(buoys).Namespace(buoy.GetNamespace()).Update(ctx, buoy, metav1.UpdateOptions{}); err != nil {
		log.Print(err)
	}
}
