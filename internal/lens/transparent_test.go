// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bufio"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/testenv"
)

// An object of 10 MB is larger than what the lens reads ahead, and than what most clients ever see.
func TestLargeObjects(t *testing.T) {
	t.Parallel()
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"},"data":{"k":"` + strings.Repeat("0123456789", 1_000_000) + `"}}`
	event := `{"type":"ADDED","object":` + object + "}\n"
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprint(w, event)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != object {
			t.Errorf("the server got %d bytes, %v", len(body), err)
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, object)
	})
	if got := s.read(s.request(http.MethodPost, "/api/v1/namespaces/b/configmaps", object, "Content-Type", "application/json")); got != object {
		t.Errorf("the client got %d bytes", len(got))
	}
	size := int64(len(object))
	if got := s.lastOf("create"); got.BytesIn != size || got.BytesOut != size || got.Object == nil || got.Object.UID != "u" || got.Undecoded != "" {
		t.Errorf("recorded is %+v", got)
	}
	line, err := bufio.NewReader(s.request(http.MethodGet, "/api/v1/configmaps?watch=true", "").Body).ReadString('\n')
	if err != nil || line != event {
		t.Errorf("the client got an event of %d bytes, %v", len(line), err)
	}
	s.awaitDelivery(func(d *Delivery) bool { return d.Object != nil && d.Object.UID == "u" && d.Undecoded == "" })
}

// awaitDelivery waits for an event of a watch.
func (s *stage) awaitDelivery(is func(*Delivery) bool) {
	s.Helper()
	testenv.Eventually(s.T, "the delivery is in the stream", func() error {
		for _, e := range s.events() {
			if e.Delivery != nil && is(e.Delivery) {
				return nil
			}
		}
		return errors.New("it is not")
	})
}

// kubectl get asks for tables, and its --watch for tables as events.
func TestTables(t *testing.T) {
	t.Parallel()
	const (
		accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
		table  = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name"}],"rows":[{"cells":["a"],"object":{"kind":"PartialObjectMetadata","metadata":{"name":"a"}}}]}`
		event  = `{"type":"ADDED","object":` + table + "}\n"
	)
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept"); got != accept {
			t.Errorf("Accept is %q", got)
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("watch") {
			fmt.Fprint(w, event)
			return
		}
		fmt.Fprint(w, table)
	})
	if got := s.read(s.request(http.MethodGet, "/api/v1/pods", "", "Accept", accept)); got != table {
		t.Errorf("the client got %s", got)
	}
	if got := s.lastOf("list"); got.Undecoded != "" || got.Object != nil || got.Items != 1 || got.BytesOut != int64(len(table)) {
		t.Errorf("recorded is %+v", got)
	}
	if got := s.read(s.request(http.MethodGet, "/api/v1/pods?watch=true", "", "Accept", accept)); got != event {
		t.Errorf("the client got %s", got)
	}
	s.awaitDelivery(func(d *Delivery) bool { return d.Type == "ADDED" && d.Object == nil && d.Undecoded == "" })
}

// secureServer is an API server that speaks HTTP/2, as the real one does. With an address, it listens there.
func secureServer(t *testing.T, address string, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(serve)
	if address != "" {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		server.Listener.Close()
		server.Listener = listener
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

func configOf(server *httptest.Server) *rest.Config {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

const added = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"}}}` + "\n"

// A client with HTTP/2 has all of its watches in one connection. One of them that breaks off leaves the others alone.
func TestBothVersionsOfHTTP(t *testing.T) {
	t.Parallel()
	next, used := make(chan string), make(chan int, 1)
	server := secureServer(t, "", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("labelSelector") == "broken" {
			fmt.Fprint(w, added)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		w.(http.Flusher).Flush()
		used <- r.ProtoMajor
		select {
		case event := <-next:
			fmt.Fprint(w, event)
		case <-r.Context().Done():
		}
	})
	for _, test := range []struct {
		name   string
		client func(*rest.Config) (http.RoundTripper, error)
		near   bool
		faults Faults
		// The versions between the client and the lens, and between the lens and the server.
		want, wantUpstream int
	}{
		{"a client that knows both", rest.TransportFor, true, nil, 1, 1},
		{"a client that knows only HTTP/1.1", onlyHTTP1, true, nil, 1, 1},
		{"a client that knows only HTTP/2", onlyHTTP2, true, nil, 2, 1},
		{"a client of a server elsewhere", rest.TransportFor, false, nil, 1, 2},
		{"a client that is disturbed", rest.TransportFor, true, &script{}, 2, 2},
	} {
		s := newStage(t, Options{Upstream: configOf(server), Near: test.near, Faults: test.faults}, nil)
		transport, err := test.client(s.lens.Config())
		if err != nil {
			t.Fatal(err)
		}
		s.client = &http.Client{Transport: transport}
		open := s.request(http.MethodGet, "/api/v1/configmaps?watch=true", "")
		if open.ProtoMajor != test.want {
			t.Errorf("%s: the lens answers with %s instead of HTTP/%d", test.name, open.Proto, test.want)
		}
		if got := <-used; got != test.wantUpstream {
			t.Errorf("%s: the lens asks the server with HTTP/%d instead of HTTP/%d", test.name, got, test.wantUpstream)
		}
		broken := s.request(http.MethodGet, "/api/v1/configmaps?watch=true&labelSelector=broken", "")
		if text, err := io.ReadAll(broken.Body); err == nil || string(text) != added {
			t.Errorf("%s: the broken watch ended with %q, %v", test.name, text, err)
		}
		next <- added
		if text := s.read(open); text != added {
			t.Errorf("%s: the other watch ended with %q", test.name, text)
		}
	}
}

func onlyHTTP1(config *rest.Config) (http.RoundTripper, error) {
	config.NextProtos = []string{"http/1.1"}
	return rest.TransportFor(config)
}

func onlyHTTP2(config *rest.Config) (http.RoundTripper, error) {
	certificates, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return rest.HTTPWrappersForConfig(config, &http.Transport{TLSClientConfig: certificates, Protocols: protocols})
}

// The API server goes away while a watch is open, and comes back: the same client goes on through the same lens.
func TestServerThatComesBack(t *testing.T) {
	t.Parallel()
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, added)
		w.(http.Flusher).Flush()
		if r.URL.Query().Has("watch") {
			<-r.Context().Done()
		}
	}
	server := secureServer(t, "", serve)
	s := newStage(t, Options{Upstream: configOf(server)}, nil)
	watch := func() *bufio.Reader {
		t.Helper()
		events := bufio.NewReader(s.request(http.MethodGet, "/api/v1/configmaps?watch=true", "").Body)
		if line, err := events.ReadString('\n'); line != added {
			t.Fatalf("the watch begins with %q, %v", line, err)
		}
		return events
	}
	open := watch()
	address := server.Listener.Addr().String()
	server.CloseClientConnections()
	server.Close()
	if _, err := open.ReadString('\n'); err == nil {
		t.Error("the watch is still open")
	}
	if away := s.request(http.MethodGet, "/api/v1/pods", ""); away.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("meanwhile, the answer is %s", away.Status)
	}
	secureServer(t, address, serve)
	if back := s.request(http.MethodGet, "/api/v1/pods", ""); back.StatusCode != http.StatusOK {
		t.Errorf("afterwards, the answer is %s", back.Status)
	}
	watch()
	testenv.Eventually(t, "both watches are in the stream", func() error {
		deliveries := 0
		for _, e := range s.events() {
			if e.Delivery != nil && e.Delivery.Object != nil {
				deliveries++
			}
		}
		if deliveries != 2 {
			return fmt.Errorf("%d events of watches", deliveries)
		}
		return nil
	})
}

// TestUpgradesThatFail has a client that is gone when the API server has agreed to an upgrade. It is recorded once.
func TestUpgradesThatFail(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{}, nil)
	x := &exchange{lens: s.lens, began: time.Now(), Call: Call{Request: Request{ID: 1, Verb: "get"}}}
	if err := x.answered(t.Context(), &http.Response{StatusCode: http.StatusSwitchingProtocols}); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if got := recover(); got != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
				t.Errorf("it ends with %v", got)
			}
		}()
		x.failed(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), io.ErrClosedPipe)
	}()
	if events := s.events(); len(events) != 1 || events[0].Request.Error != "" {
		t.Errorf("recorded are %+v", events)
	}
}
