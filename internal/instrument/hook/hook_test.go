// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/internal/testenv"
)

func TestFolders(t *testing.T) {
	p := program{module: "example.com/ship", main: "cmd"}
	for function, want := range map[string]string{
		"main.main": "cmd", "main.(*reconciler).leave.func1": "cmd",
		"example.com/ship.Sail": "",
		"example.com/ship/internal/controller.(*FrigateReconciler).Reconcile":  "internal/controller",
		"example.com/ship/api/v1%2ebeta.Deep":                                  "api/v1.beta",
		"example.com/ship/internal/pass.End[...]":                              "internal/pass",
		"sigs.k8s.io/controller-runtime/pkg/client.(*client).Update":           "-",
		"example.com/shipyard/internal/controller.(*YardReconciler).Reconcile": "-",
		"k8s.io/client-go/rest.(*Request).Do":                                  "-",
		"net/http.(*Client).Do":                                                "-",
		"runtime.goexit":                                                       "-",
		"":                                                                     "-",
	} {
		folder, known := p.folder(function)
		if !known {
			folder = "-"
		}
		if folder != want {
			t.Errorf("%s is in %q, want %q", function, folder, want)
		}
	}
}

// Requests of a reconciler may be of any type.
func TestNames(t *testing.T) {
	type object struct{ Namespace, Name string }
	type batch struct{ Objects []object }
	long := strings.Repeat("ä", maxName)
	for want, request := range map[[2]string]any{
		{"a", "b"}:                         object{"a", "b"},
		{"", "{[{a b}]}"}:                  batch{[]object{{"a", "b"}}},
		{"", "{[{" + long[:maxName-4]}:     batch{[]object{{long, "b"}}}, // the cut is in the middle of a letter
		{"", "nightly"}:                    "nightly",
		{"", strings.Repeat("x", maxName)}: strings.Repeat("x", 100_000),
	} {
		if namespace, name := nameOf(request); namespace != want[0] || name != want[1] {
			t.Errorf("%.100v is %q, %q", request, namespace, name)
		}
	}
}

func TestTerminalErrors(t *testing.T) {
	terminal, other := ctrl.TerminalError(errors.New("a")), errors.New("b")
	for _, one := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {other, false}, {terminal, true}, {fmt.Errorf("c: %w", terminal), true}, {errors.Join(other, terminal), true},
		{fmt.Errorf("%w, %w", other, fmt.Errorf("d: %w", terminal)), true}, {errors.Join(other, other), false},
	} {
		if got := isTerminal(one.err); got != one.want {
			t.Errorf("%v is terminal: %t", one.err, got)
		}
	}
}

// last is a transport that keeps what arrives.
type last struct{ request *http.Request }

func (l *last) RoundTrip(r *http.Request) (*http.Response, error) {
	l.request = r
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// TestOnlyWritesHaveALine sends requests through a client that is wrapped twice. Frames of this module are those of the
// operator here; the nearest is this transport itself.
func TestOnlyWritesHaveALine(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); !ok || info.Main.Path == "" {
		t.Fatal("the test binary does not name its module, which the hook needs")
	}
	for method, want := range map[string]bool{"GET": false, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "HEAD": false} {
		inner := &last{}
		client := http.Client{Transport: &transport{&transport{inner}}}
		request := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/api/v1/pods", http.NoBody)
		request.RequestURI = ""
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		got := inner.request.Header.Get(source)
		if matched := regexp.MustCompile(`^internal%2Finstrument%2Fhook%2Fhook_test\.go:\d+$`).MatchString(got); matched != want {
			t.Errorf("%s: got %q", method, got)
		}
		if strings.Contains(got, "%2F..") || strings.HasPrefix(got, "%2F") {
			t.Errorf("%s: %q is no path in the module", method, got)
		}
		if request.Header.Get(source) != "" {
			t.Errorf("%s: the caller's own request was changed", method)
		}
	}
}

// TestTheCredentialIsSentAtOnce has an operator with nothing to reconcile at first. Who does not say soon who it is, is not
// listened to later.
func TestTheCredentialIsSentAtOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	queue := make(chan mark)
	defer close(queue)
	go send(listener.Addr().String(), "secret", queue)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(testenv.Patience)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "secret\n" {
		t.Errorf("it says %q, %v", line, err)
	}
}

// TestRequestsWithoutTheContext has reconcilers that do not pass their context on: the goroutine names the reconcile.
func TestRequestsWithoutTheContext(t *testing.T) {
	queue := make(chan mark, 16)
	started = func() chan mark { return queue }
	t.Cleanup(func() { started = sync.OnceValue(start) })
	send := func(ctx context.Context) string {
		inner := &last{}
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/api/v1/pods", http.NoBody)
		answer, err := Transport(inner).RoundTrip(request)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer answer.Body.Close()
		return inner.request.Header.Get(header)
	}
	elsewhere := func(ctx context.Context) string {
		sent := make(chan string)
		go func() { sent <- send(ctx) }()
		return <-sent
	}
	todo := context.Background()
	ctx, end := Begin(todo, "ships", struct{ Namespace, Name string }{"a", "b"})
	id := strconv.FormatUint(lastID.Load(), 10)
	for name, one := range map[string]struct{ got, want string }{
		"with the context":     {send(ctx), id},
		"without":              {send(todo), id},
		"in another goroutine": {elsewhere(ctx), id},
		"in another goroutine, without a context": {elsewhere(todo), ""},
	} {
		if one.got != one.want {
			t.Errorf("%s: got %q, want %q", name, one.got, one.want)
		}
	}
	end(nil, nil, false)
	if got := send(todo); got != "" {
		t.Errorf("after the end: got %q", got)
	}
	end = BeginWithoutContext("ships", struct{ Namespace, Name string }{"a", "c"})
	if got, want := send(todo), strconv.FormatUint(lastID.Load(), 10); got != want {
		t.Errorf("a reconciler without a context: got %q, want %q", got, want)
	}
	end(nil, nil, false)
}

func BenchmarkCallers(b *testing.B) {
	// As deep as a write of a reconciler is.
	var down func(int) string
	down = func(n int) string {
		if n == 0 {
			return callers()
		}
		return down(n - 1)
	}
	for b.Loop() {
		down(30)
	}
}
