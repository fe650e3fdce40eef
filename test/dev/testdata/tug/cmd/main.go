// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// An operator that makes a Lamp for each Tug. Lamps are a kind of another module. Tugs have a controller that is set up when the first
// Pilot is reconciled: late, as in operators that wait for a certificate.
package main

import (
	"context"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	thingsv1 "other.io/things/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var (
	tugs   = schema.GroupVersionKind{Group: "tug.example.com", Version: "v1", Kind: "Tug"}
	lamps  = schema.GroupVersionKind{Group: thingsv1.Group, Version: "v1", Kind: "Lamp"}
	pilots = schema.GroupVersionKind{Group: "tug.example.com", Version: "v1", Kind: "Pilot"}
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		ctrl.Log.Error(err, "the operator failed")
		os.Exit(1)
	}
}

func run() error {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	aboard := make(chan struct{})
	pilot := &reconciler{Client: mgr.GetClient(), kind: pilots, first: sync.OnceFunc(func() { close(aboard) })}
	if err := ctrl.NewControllerManagedBy(mgr).Named("pilot").For(of(pilots)).Complete(pilot); err != nil {
		return err
	}
	later := manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-aboard:
		case <-ctx.Done():
			return nil
		}
		return ctrl.NewControllerManagedBy(mgr).Named("tug").For(of(tugs)).Owns(of(lamps)).Complete(&reconciler{Client: mgr.GetClient(), kind: tugs})
	})
	if err := mgr.Add(later); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

type reconciler struct {
	client.Client

	kind  schema.GroupVersionKind
	first func() // called when a Pilot is reconciled
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found := of(r.kind)
	if err := r.Get(ctx, request.NamespacedName, found); err != nil || found.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.kind == pilots {
		r.first()
		return ctrl.Result{}, nil
	}
	lamp := of(lamps)
	lamp.SetNamespace(found.GetNamespace())
	lamp.SetName(found.GetName())
	if err := ctrl.SetControllerReference(found, lamp, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(r.Create(ctx, lamp))
}

func of(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
