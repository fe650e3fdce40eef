// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opdock/opdock/why/internal/serving"
)

// BindAddressVariable is the environment variable that makes an operator serve its records: a loopback address such as
// 127.0.0.1:8082. opdock dev sets it.
const BindAddressVariable = "OPDOCK_WHY_BIND_ADDRESS"

// Start serves the records on the address in BindAddressVariable, if it is set. It makes a recorder a manager.Runnable.
// ControllerManagedBy adds the recorder to its manager; without it, call mgr.Add(recorder).
//
// The variable is safe: only a process of the same machine or pod can reach the address, and a user who sets the environment
// of an operator can run any program in its place. To turn it off, clear the variable in main.
//
// Errors are logged, because an operator can work without serving its records.
func (r *Recorder) Start(ctx context.Context) error {
	address := os.Getenv(BindAddressVariable)
	// Each of its controllers may have added it.
	if r != nil && address != "" && r.serving.CompareAndSwap(false, true) {
		defer r.serving.Store(false)
		if err := r.Serve(ctx, address); err != nil {
			log.Log.WithName("why").Error(err, "Reconcile records are not served", "variable", BindAddressVariable)
		}
	}
	<-ctx.Done()
	return nil
}

// NeedLeaderElection returns false: the records are served by all instances, not only by the leader.
func (r *Recorder) NeedLeaderElection() bool { return false }

// addTo adds the recorder to the manager, if it has something to serve.
func (r *Recorder) addTo(m ctrl.Manager) error {
	if os.Getenv(BindAddressVariable) == "" {
		return nil
	}
	return m.Add(r)
}

// Serve serves HTTPHandler until the context ends. It shows the content of objects to everyone who can reach it, so it only
// listens on loopback addresses, and refuses requests that a browser sends for a page of another machine.
func (r *Recorder) Serve(ctx context.Context, address string) error {
	listener, err := serving.Listen(ctx, address)
	if err != nil {
		return err
	}
	log.Log.WithName("why").V(1).Info("Serving reconcile records", "address", "http://"+listener.Addr().String()+"/why/summary")
	return serving.Serve(ctx, listener, r.HTTPHandler(), serving.DefaultBounds)
}
