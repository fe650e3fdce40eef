// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/limit"
	"github.com/opdock/opdock/internal/loopback"
)

const (
	// maxConnections bounds what all clients together can take.
	maxConnections = 128
	// stuck is how long a client may stop reading while others wait for a connection.
	stuck = time.Second
)

// Running is a page that is served.
type Running struct {
	url    string
	server *http.Server
	note   *Note
	ended  chan struct{}
	close  sync.Once
}

// Start serves the page until it is closed.
func Start(o Options) (*Running, error) {
	handler, err := New(o)
	if err != nil {
		return nil, err
	}
	listener, err := listen(o.Address)
	if err != nil {
		return nil, err
	}
	url := "http://" + listener.Addr().String()
	r := &Running{url: url, ended: make(chan struct{})}
	if o.StateDir != "" {
		if r.note, err = Announce(o.StateDir, File{Address: url, Project: o.Project}); err != nil {
			listener.Close()
			return nil, err
		}
	}
	streams, endStreams := context.WithCancel(context.Background())
	r.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		// Streams have as long for each of their messages.
		WriteTimeout: cmp.Or(o.answerWithin, writeTimeout),
		BaseContext:  func(net.Listener) context.Context { return streams },
	}
	r.server.RegisterOnShutdown(endStreams)
	go func() {
		defer close(r.ended)
		defer endStreams()
		// It returns when it is closed, and its error does not matter then.
		_ = r.server.Serve(limit.Listener(listener, maxConnections, stuck))
	}()
	return r, nil
}

// URL is where a browser finds the page.
func (r *Running) URL() string { return r.url }

// Close ends the page and all who follow it.
func (r *Running) Close() error {
	var err error
	r.close.Do(func() {
		if r.note != nil {
			err = r.note.Close()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if r.server.Shutdown(ctx) != nil {
			_ = r.server.Close() // a client that neither reads nor disconnects
		}
		<-r.ended
	})
	return err
}

// LoopbackError means that other machines can reach an address.
type LoopbackError struct{ Address string }

func (e *LoopbackError) Error() string {
	return fmt.Sprintf("the page is served on loopback only, and %q is not: use 127.0.0.1:PORT or [::1]:PORT", e.Address)
}

// CheckAddress reports whether the page may be served there.
func CheckAddress(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("the page's address: %w", err)
	}
	if !loopback.IsHost(address) {
		return &LoopbackError{Address: address}
	}
	return nil
}

func listen(address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	listener, err := loopback.Listen(context.Background(), address)
	var elsewhere *loopback.Error
	switch {
	case errors.As(err, &elsewhere):
		return nil, &LoopbackError{Address: elsewhere.Address}
	case err != nil:
		return nil, fmt.Errorf("serving the page: %w", err)
	}
	return listener, nil
}
