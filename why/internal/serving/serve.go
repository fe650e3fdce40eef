// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"time"

	"github.com/opdock/opdock/internal/limit"
	"github.com/opdock/opdock/internal/loopback"
)

// Listen listens on a loopback address. It returns an error for any other address.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := loopback.Listen(ctx, address)
	var elsewhere *loopback.Error
	switch {
	case errors.As(err, &elsewhere) && elsewhere.Address == address:
		return nil, fmt.Errorf("serving reconcile records: %w such as 127.0.0.1:8082", err)
	case errors.As(err, &elsewhere):
		return nil, fmt.Errorf("serving reconcile records: %q resolves to %s, which is not a loopback address", address, elsewhere.Address)
	case err != nil:
		return nil, fmt.Errorf("serving reconcile records: %w", err)
	}
	return listener, nil
}

// Bounds limit what all clients together can take of an operator.
type Bounds struct {
	Connections, Streams int
	// Within is how long a client may take to read an answer. Streams have a limit for each message instead.
	Within time.Duration
	// Stuck is how long a client may stop reading while others wait for a connection.
	Stuck time.Duration
}

// DefaultBounds are enough for the tools of one developer.
var DefaultBounds = Bounds{Connections: 64, Streams: 16, Within: 10 * time.Second, Stuck: time.Second}

// Serve serves a handler of records until the context ends, to clients and pages of this machine only.
func Serve(ctx context.Context, listener net.Listener, records http.Handler, b Bounds) error {
	server := &http.Server{
		Handler: OnlyLocal(atMost(b.Streams, records)), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		WriteTimeout: b.Within, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(limit.Listener(listener, b.Connections, b.Stuck)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving reconcile records: %w", err)
	}
	return nil
}

// atMost limits the number of streams, because each of them lasts.
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

// OnlyLocal refuses requests that a browser sends for a page of another machine, even if the name of that page resolves to
// this one.
func OnlyLocal(inner http.Handler) http.Handler {
	guard := loopback.Guard{LocalPages: true}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if status, _ := guard.Check(request); status != http.StatusOK {
			refuse(w, http.StatusForbidden, "only pages from this machine are allowed")
			return
		}
		inner.ServeHTTP(w, request)
	})
}
