// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opdock/opdock/internal/controller"
)

// arrivals starts the controller of each kind as soon as the cluster knows the kind. A controller that is started before
// that would fail, and take the manager and all other controllers with it.
type arrivals struct {
	manager ctrl.Manager
	kinds   []controller.Kind
	setup   func(controller.Kind) error
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Start implements manager.Runnable. It returns when all kinds are there, or the manager stops.
func (a *arrivals) Start(ctx context.Context) error {
	missing := slices.Clone(a.kinds)
	arrived := func() (bool, error) {
		var still []controller.Kind
		for _, kind := range missing {
			known, err := a.known(kind)
			switch {
			case err != nil:
				return false, err
			case !known:
				still = append(still, kind)
			default:
				if err := a.setup(kind); err != nil {
					return false, fmt.Errorf("setting up %s: %w", kind.Kind, err)
				}
			}
		}
		missing = still
		return len(missing) == 0, nil
	}
	if done, err := arrived(); done || err != nil {
		return err
	}
	for _, kind := range missing {
		a.manager.GetLogger().Info("This kind is not installed. Its controller starts when it is; install it with `opdock install`, or apply config/crd",
			"kind", kind.Kind, "crd", kind.CRD())
	}
	client, err := metadata.NewForConfigAndClient(a.manager.GetConfig(), a.manager.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for CRDs: %w", err)
	}
	source := client.Resource(crds)
	_, err = watchtools.UntilWithSync(ctx, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return source.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return source.Watch(ctx, options)
		},
	}, &metav1.PartialObjectMetadata{}, nil, func(watch.Event) (bool, error) { return arrived() })
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// NeedLeaderElection makes a manager that is not the leader wait.
func (a *arrivals) NeedLeaderElection() bool { return true }

// known asks the server, because a CRD is there before its kind is.
func (a *arrivals) known(kind controller.Kind) (bool, error) {
	mapping, err := a.manager.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking for %s: %w", kind.Kind, err)
	}
	return mapping != nil, nil
}
