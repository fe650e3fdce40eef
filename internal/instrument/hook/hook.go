// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hook marks the reconciles of an operator for whoever watches it. It is compiled into a copy of controller-runtime, for
// builds of a developer alone, so it uses nothing but the standard library, in the language of Go 1.20. Without the environment
// variable it does nothing.
package hook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	variable = "OPDOCK_LENS_HOOK" // ADDRESS/CREDENTIAL
	header   = "X-Opdock-Reconcile"

	maxQueued  = 4096
	maxError   = 2000
	dialWithin = 5 * time.Second
	// eachSecond lets the IDs of a process follow those of the one before, as numbers that JSON can hold.
	eachSecond = 100_000
	epoch      = 1_700_000_000
)

// mark is one line that is sent.
type mark struct {
	At        time.Time  `json:"at"`
	Reconcile *reconcile `json:"reconcile,omitempty"`
	Read      *read      `json:"read,omitempty"`
	Dropped   uint64     `json:"dropped,omitempty"`
}

type reconcile struct {
	ID           uint64        `json:"id"`
	Controller   string        `json:"controller"`
	Namespace    string        `json:"namespace,omitempty"`
	Name         string        `json:"name"`
	Ended        bool          `json:"ended,omitempty"`
	Duration     time.Duration `json:"duration,omitempty"`
	Error        string        `json:"error,omitempty"`
	Terminal     bool          `json:"terminal,omitempty"`
	Panicked     bool          `json:"panicked,omitempty"`
	Requeue      bool          `json:"requeue,omitempty"`
	RequeueAfter time.Duration `json:"requeueAfter,omitempty"`
}

type read struct {
	Reconcile uint64 `json:"reconcile"`
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

var (
	started = sync.OnceValue(start)
	lastID  atomic.Uint64
	dropped atomic.Uint64
)

// start connects to whoever watches; nil if there is none.
func start() chan mark {
	address, credential, found := strings.Cut(os.Getenv(variable), "/")
	if !found {
		return nil
	}
	if seconds := time.Now().Unix() - epoch; seconds > 0 {
		lastID.Store(uint64(seconds) * eachSecond)
	}
	queue := make(chan mark, maxQueued)
	go send(address, credential, queue)
	return queue
}

func send(address, credential string, queue chan mark) {
	conn, err := net.DialTimeout("tcp", address, dialWithin)
	if err != nil {
		return // marks that nobody takes are dropped
	}
	defer conn.Close()
	out := bufio.NewWriter(conn)
	lines := json.NewEncoder(out)
	if _, err := fmt.Fprintln(out, credential); err != nil {
		return
	}
	for m := range queue {
		if lines.Encode(m) != nil {
			return
		}
		if count := dropped.Swap(0); count > 0 && lines.Encode(mark{At: time.Now(), Dropped: count}) != nil {
			return
		}
		if len(queue) == 0 && out.Flush() != nil {
			return
		}
	}
}

// put never blocks.
func put(queue chan mark, m mark) {
	m.At = time.Now()
	select {
	case queue <- m:
	default:
		dropped.Add(1)
	}
}

type contextKey struct{}

func idOf(ctx context.Context) uint64 {
	id, _ := ctx.Value(contextKey{}).(uint64)
	return id
}

// Begin marks the beginning of a reconcile. Whoever calls it calls the returned function at its end.
func Begin(ctx context.Context, controller string, request any) (context.Context, func(result any, err error, panicked bool)) {
	queue := started()
	if queue == nil {
		return ctx, func(any, error, bool) {}
	}
	r := reconcile{ID: lastID.Add(1), Controller: controller}
	r.Namespace, r.Name = nameOf(request)
	began := time.Now()
	put(queue, mark{Reconcile: &r})
	return context.WithValue(ctx, contextKey{}, r.ID), func(result any, err error, panicked bool) {
		ended := r
		ended.Ended, ended.Duration, ended.Panicked = true, time.Since(began), panicked
		if err != nil {
			if ended.Error = err.Error(); len(ended.Error) > maxError {
				ended.Error = ended.Error[:maxError]
			}
			ended.Terminal = isTerminal(err)
			ended.Panicked = panicked || strings.HasPrefix(ended.Error, "panic: ") && strings.HasSuffix(ended.Error, "[recovered]")
		}
		ended.Requeue, ended.RequeueAfter = resultOf(result)
		put(queue, mark{Reconcile: &ended})
	}
}

// isTerminal says whether an error is one of those that are not retried, whose type is controller-runtime's own.
func isTerminal(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasSuffix(reflect.TypeOf(err).String(), "reconcile.terminalError") {
			return true
		}
	}
	return false
}

// nameOf reads what is to be reconciled: a reconcile.Request, or something of the operator's own.
func nameOf(request any) (namespace, name string) {
	value := reflect.ValueOf(request)
	if value.Kind() == reflect.Struct {
		namespace, inNamespace := stringIn(value, "Namespace")
		if name, named := stringIn(value, "Name"); named && inNamespace {
			return namespace, name
		}
	}
	return "", fmt.Sprint(request)
}

func stringIn(value reflect.Value, field string) (string, bool) {
	found := value.FieldByName(field)
	if !found.IsValid() || found.Kind() != reflect.String {
		return "", false
	}
	return found.String(), true
}

// resultOf reads a reconcile.Result, whose fields differ between versions.
func resultOf(result any) (requeue bool, after time.Duration) {
	value := reflect.ValueOf(result)
	if value.Kind() != reflect.Struct {
		return false, 0
	}
	if field := value.FieldByName("Requeue"); field.IsValid() && field.Kind() == reflect.Bool {
		requeue = field.Bool()
	}
	if field := value.FieldByName("RequeueAfter"); field.IsValid() && field.Kind() == reflect.Int64 {
		after = time.Duration(field.Int())
	}
	return requeue, after
}

// Read marks a read that a cache answers. The name is empty for a list.
func Read(ctx context.Context, group, version, kind, namespace, name string) {
	queue := started()
	if queue == nil {
		return
	}
	if id := idOf(ctx); id != 0 {
		put(queue, mark{Read: &read{Reconcile: id, Group: group, Version: version, Kind: strings.TrimSuffix(kind, "List"), Namespace: namespace, Name: name}})
	}
}

// Transport lets requests say which reconcile they belong to.
func Transport(inner http.RoundTripper) http.RoundTripper {
	if started() == nil {
		return inner
	}
	return &transport{inner}
}

type transport struct{ inner http.RoundTripper }

// WrappedRoundTripper lets client-go look below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.inner }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if id := idOf(request.Context()); id != 0 {
		request = request.Clone(request.Context())
		request.Header.Set(header, strconv.FormatUint(id, 10))
	}
	return t.inner.RoundTrip(request)
}
