// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opdock/opdock/internal/limit"
	"github.com/opdock/opdock/internal/loopback"
)

// BindAddressVariable is the environment variable by which whoever runs an operator asks it to serve what is recorded: a
// loopback address such as 127.0.0.1:8082. opdock dev sets it.
const BindAddressVariable = "OPDOCK_WHY_BIND_ADDRESS"

// Start makes a recorder a manager.Runnable that serves what is recorded at the address that BindAddressVariable names, if
// it names one. ControllerManagedBy adds the recorder to its manager; who does without it says mgr.Add(recorder).
//
// So an operator that records can be asked to serve by its environment. Whoever sets that can run anything in its place, and
// what is served can be reached only from the same machine or pod. Who wants it not even there clears the variable in main.
//
// That nobody can look at it is no reason for an operator to end, so what goes wrong here is logged.
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

// NeedLeaderElection lets it answer whoever leads.
func (r *Recorder) NeedLeaderElection() bool { return false }

// addTo lets the manager start the recorder, if that has something to do.
func (r *Recorder) addTo(m ctrl.Manager) error {
	if os.Getenv(BindAddressVariable) == "" {
		return nil
	}
	return m.Add(r)
}

// Serve serves what HTTPHandler does until the context ends. It shows what is in objects to whoever can reach it, so that is
// only who is on the same machine, or in the same pod: other addresses than those of loopback are refused, and so are
// requests that a browser sends for a page from elsewhere.
func (r *Recorder) Serve(ctx context.Context, address string) error {
	listener, err := loopback.Listen(ctx, address)
	var elsewhere *loopback.Error
	switch {
	case errors.As(err, &elsewhere) && elsewhere.Address == address:
		return fmt.Errorf("serving reconcile records: %w such as 127.0.0.1:8082", err)
	case errors.As(err, &elsewhere):
		return fmt.Errorf("serving reconcile records: %q resolves to %s, which is not a loopback address", address, elsewhere.Address)
	case err != nil:
		return fmt.Errorf("serving reconcile records: %w", err)
	}
	log.Log.WithName("why").V(1).Info("Serving reconcile records", "address", "http://"+listener.Addr().String()+"/why/summary")
	return r.serveOn(ctx, listener, bounds{connections: 64, streams: 16, within: 10 * time.Second, stuck: time.Second})
}

// bounds are what all who ask can take of an operator together.
type bounds struct {
	connections, streams int
	// within is how long somebody may take to read an answer; streams have readWithin for each of their messages.
	within time.Duration
	// stuck is how long somebody may not read while others wait for the place.
	stuck time.Duration
}

func (r *Recorder) serveOn(ctx context.Context, listener net.Listener, b bounds) error {
	server := &http.Server{
		Handler: onlyLocal(atMost(b.streams, r.HTTPHandler())), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		WriteTimeout: b.within, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(limit.Listener(listener, b.connections, b.stuck)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving reconcile records: %w", err)
	}
	return nil
}

// atMost refuses streams beyond so many, because each of them lasts.
func atMost(streams int, inner http.Handler) http.Handler {
	limited := loopback.NewStreams(streams).Limit(inner, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusServiceUnavailable, "%d streams are already open", streams)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if path.Base(request.URL.Path) == "stream" {
			limited.ServeHTTP(w, request)
			return
		}
		inner.ServeHTTP(w, request)
	})
}

// onlyLocal refuses what a browser sends for a page from elsewhere, even if the name of that page leads here.
func onlyLocal(inner http.Handler) http.Handler {
	guard := loopback.Guard{LocalPages: true}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if status, _ := guard.Check(request); status != http.StatusOK {
			refuse(w, http.StatusForbidden, "only pages from this machine are allowed")
			return
		}
		inner.ServeHTTP(w, request)
	})
}
