// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// controller-runtime before 0.15 declares an older language version. The constraint raises it for this file.

//go:build go1.21

// Package hook marks the reconciles of an operator for a lens that watches it. It is compiled into a copy of
// controller-runtime that only development builds use, so it imports only the standard library and uses the language
// of Go 1.21. Without the environment variable it does nothing.
package hook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	variable = "OPDOCK_LENS_HOOK" // ADDRESS/CREDENTIAL
	header   = "X-Opdock-Reconcile"
	source   = "X-Opdock-Source"

	// maxFrames is the maximum depth of the stack of a write that is read, and maxPlaces the maximum number of lines
	// that are reported.
	maxFrames  = 64
	maxPlaces  = 3
	maxQueued  = 4096
	maxError   = 2000
	maxName    = 250
	dialWithin = 5 * time.Second
	// eachSecond makes the IDs of a process larger than those of the previous one, within the range of JSON numbers.
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

// start connects to the lens; nil if there is none.
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
		return // marks that are not read are dropped
	}
	defer conn.Close()
	out := bufio.NewWriter(conn)
	lines := json.NewEncoder(out)
	// Sent before the first mark: the receiver closes connections without a credential after a few seconds, and the first
	// reconcile may come later.
	if _, err := fmt.Fprintln(out, credential); err != nil || out.Flush() != nil {
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

// running maps goroutines to the reconciles that they run. Many reconcilers call clients with context.TODO(), and
// controller-runtime before 0.7 passes no context at all.
var running sync.Map

// idOf returns the reconcile that a context or else the calling goroutine belongs to; 0 if there is none.
func idOf(ctx context.Context) uint64 {
	if id, known := ctx.Value(contextKey{}).(uint64); known {
		return id
	}
	found, _ := running.Load(goroutine())
	id, _ := found.(uint64)
	return id
}

// goroutine returns the number of the calling goroutine, which the runtime shows only in stack traces.
func goroutine() uint64 {
	var buffer [64]byte
	fields := strings.Fields(string(buffer[:runtime.Stack(buffer[:], false)])) // goroutine 12 [running]:
	if len(fields) < 2 {
		return 0
	}
	number, _ := strconv.ParseUint(fields[1], 10, 64)
	return number
}

// Begin marks the beginning of a reconcile. The caller calls the returned function at its end.
func Begin(ctx context.Context, controller string, request any) (context.Context, func(result any, err error, panicked bool)) {
	queue := started()
	if queue == nil {
		return ctx, func(any, error, bool) {}
	}
	r := reconcile{ID: lastID.Add(1), Controller: controller}
	r.Namespace, r.Name = nameOf(request)
	began, worker := time.Now(), goroutine()
	running.Store(worker, r.ID)
	put(queue, mark{Reconcile: &r})
	return context.WithValue(ctx, contextKey{}, r.ID), func(result any, err error, panicked bool) {
		running.Delete(worker)
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

// BeginWithoutContext is Begin for reconcilers that get no context.
func BeginWithoutContext(controller string, request any) func(result any, err error, panicked bool) {
	_, end := Begin(context.Background(), controller, request)
	return end
}

// isTerminal reports whether an error is controller-runtime's terminal error, which is not retried.
func isTerminal(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasSuffix(reflect.TypeOf(err).String(), "reconcile.terminalError") {
			return true
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, one := range joined.Unwrap() {
				if isTerminal(one) {
					return true
				}
			}
		}
	}
	return false
}

// nameOf reads the request: a reconcile.Request, or a type of the operator.
func nameOf(request any) (namespace, name string) {
	value := reflect.ValueOf(request)
	if value.Kind() == reflect.Struct {
		namespace, inNamespace := stringIn(value, "Namespace")
		if name, named := stringIn(value, "Name"); named && inNamespace {
			return namespace, name
		}
	}
	// Such a type may contain anything, and the receiver accepts only short lines.
	if name = fmt.Sprint(request); len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return "", name
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

// Transport adds the reconcile to requests.
func Transport(inner http.RoundTripper) http.RoundTripper {
	if started() == nil {
		return inner
	}
	return &transport{inner}
}

type transport struct{ inner http.RoundTripper }

// WrappedRoundTripper returns the inner transport for client-go.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.inner }

// RoundTrip implements http.RoundTripper. It runs in the goroutine that sends the request, so the lines that led to it can be found.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	id, from := idOf(request.Context()), ""
	// A client may be wrapped twice, and the outer transport has set the header.
	if isWrite(request.Method) && request.Header.Get(source) == "" {
		from = callers()
	}
	if id != 0 || from != "" {
		request = request.Clone(request.Context())
	}
	if id != 0 {
		request.Header.Set(header, strconv.FormatUint(id, 10))
	}
	if from != "" {
		request.Header.Set(source, from)
	}
	return t.inner.RoundTrip(request)
}

func isWrite(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// program is the build information of this binary.
type program struct {
	module string // path of the main module
	main   string // folder of the main package in it
}

var thisProgram = sync.OnceValue(func() program {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path == "" {
		return program{}
	}
	return program{module: info.Main.Path, main: strings.TrimPrefix(strings.TrimPrefix(info.Path, info.Main.Path), "/")}
})

// stack is a way through the program.
type stack [maxFrames]uintptr

// knownStacks caches the lines of stacks: an operator writes from a few places, again and again.
var (
	knownStacks sync.Map
	stackCount  atomic.Int64
)

const maxStacks = 4096

// callers returns the calling lines of the operator's own module, the nearest first: FILE:LINE, with the
// file relative to the module. Callers in the same folder are left out. It is empty if the operator's
// code is not in the stack.
func callers() string {
	this := thisProgram()
	if this.module == "" {
		return ""
	}
	var counters stack
	const own = 3 // runtime.Callers, callers and RoundTrip
	count := runtime.Callers(own, counters[:])
	if known, ok := knownStacks.Load(counters); ok {
		text, _ := known.(string)
		return text
	}
	text := this.lines(counters[:count])
	if stackCount.Add(1) <= maxStacks {
		knownStacks.Store(counters, text)
	}
	return text
}

func (p program) lines(counters []uintptr) string {
	frames := runtime.CallersFrames(counters)
	var places []string
	last := "-"
	for more := true; more && len(places) < maxPlaces; {
		var frame runtime.Frame
		frame, more = frames.Next()
		folder, known := p.folder(frame.Function)
		if !known || folder == last {
			continue
		}
		last = folder
		// A file name may contain characters that a header must not.
		name := path.Join(folder, path.Base(strings.ReplaceAll(frame.File, "\\", "/")))
		places = append(places, url.QueryEscape(name)+":"+strconv.Itoa(frame.Line))
	}
	return strings.Join(places, ",")
}

// folder returns the folder of a function's package in the main module; false for functions of other
// modules.
func (p program) folder(function string) (string, bool) {
	// The path of a package ends at the first dot after its last slash; dots before that are escaped.
	slash := strings.LastIndexByte(function, '/') + 1
	dot := strings.IndexByte(function[slash:], '.')
	if dot < 0 {
		return "", false
	}
	pkg := strings.ReplaceAll(function[:slash+dot], "%2e", ".")
	switch {
	case pkg == "main":
		return p.main, true
	case pkg == p.module:
		return "", true
	case strings.HasPrefix(pkg, p.module+"/"):
		return pkg[len(p.module)+1:], true
	}
	return "", false
}
