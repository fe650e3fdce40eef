// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// serve runs an operator of one kind until it is stopped.
func serve(kind schema.GroupVersionKind, owned client.Object, reconciler func(client.Client) reconcile.Reconciler) {
	flag.Bool("leader-elect", false, "")
	flag.String("metrics-bind-address", "0", "")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := manage(kind, owned, reconciler); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func manage(kind schema.GroupVersionKind, owned client.Object, reconciler func(client.Client) reconcile.Reconciler) error {
	config, err := ctrl.GetConfig()
	if os.Getenv("CONFIG") == "in-cluster" {
		config, err = rest.InClusterConfig()
	}
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		// Without these defects, custom resources are read from the API server: they are unstructured.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: os.Getenv("DEFECT") == "trusts-cache" || os.Getenv("DEFECT") == "old-status"}},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).For(blank(kind)).Owns(owned).Complete(reconciler(mgr.GetClient()))
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// blank is an object of the kind without anything in it.
func blank(kind schema.GroupVersionKind) *unstructured.Unstructured {
	one := &unstructured.Unstructured{}
	one.SetGroupVersionKind(kind)
	return one
}
