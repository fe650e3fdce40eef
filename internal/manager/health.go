// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// addChecks makes the manager healthy while it responds, and ready once its caches are synced. A manager that waits
// for leadership is ready, too: it can take over at any time.
func addChecks(mgr ctrl.Manager, arriving *arrivals, leaderElection bool) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	err := mgr.AddReadyzCheck("caches", func(request *http.Request) error {
		select {
		case <-mgr.Elected():
			return arriving.synced(request.Context(), mgr.GetCache())
		default:
			if leaderElection {
				return nil
			}
			return errors.New("the controllers have not started yet")
		}
	})
	if err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}

// synced returns what keeps the caches of the started kinds from being complete. A kind that is not installed does
// not matter.
func (a *arrivals) synced(ctx context.Context, informers cache.Informers) error {
	a.mutex.Lock()
	looked, started := a.looked, a.started
	a.mutex.Unlock()
	if !looked {
		return errors.New("it is not yet known which kinds are installed")
	}
	for _, kind := range started {
		for _, object := range append([]client.Object{kind.New()}, kind.Children...) {
			informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
			if err != nil {
				return fmt.Errorf("finding the cache of %T: %w", object, err)
			}
			if !informer.HasSynced() {
				return fmt.Errorf("the cache of %T has not synced yet", object)
			}
		}
	}
	return nil
}
