// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/opdock/opdock/why"
)

// newRecorder returns the recorder that the settings ask for, nil if nobody wants to know, and a function that ends it.
func newRecorder(ctx context.Context, s *settings, logger logr.Logger) (recorder *why.Recorder, end func(), err error) {
	end = func() {}
	if s.whyAddress == off && s.traces == noTraces {
		return nil, end, nil
	}
	options := why.Options{Logger: logger.WithName("why")}
	if s.metricsAddress != off {
		options.Registerer = metrics.Registry
	}
	if s.traces != noTraces {
		if options.TracerProvider, end, err = newTracerProvider(ctx, s.traces, logger.WithName("traces")); err != nil {
			return nil, nil, err
		}
	}
	return why.New(options), end, nil
}

// whyServer serves what the recorder knows. It shows what is in objects to whoever can reach it, so that is only who is on
// the same machine, or in the same pod; kubectl port-forward gets there, and asks the API server whether one may.
type whyServer struct {
	address  string
	recorder *why.Recorder
	log      logr.Logger
}

// NeedLeaderElection lets it answer whoever leads.
func (s *whyServer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *whyServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("serving why objects are reconciled: %w", err)
	}
	s.log.Info("Serving why objects are reconciled", "address", "http://"+listener.Addr().String()+"/why/summary")
	server := &http.Server{
		Handler: onlyLocal(s.recorder.HTTPHandler()), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving why objects are reconciled: %w", err)
	}
	return nil
}

// onlyLocal refuses what a browser sends for a page from elsewhere, even if the name of that page leads here.
func onlyLocal(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		origin := request.Header.Get("Origin")
		from, err := url.Parse(origin)
		if !isLoopback(request.Host) || origin != "" && (err != nil || !isLoopback(from.Host)) {
			http.Error(w, `{"error":"only pages of this machine may ask"}`, http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, request)
	})
}

// isLoopback says whether an address, with or without a port, is that of this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
