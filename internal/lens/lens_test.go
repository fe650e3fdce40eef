// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/opdock/opdock/internal/testenv"
)

// stage is a lens in front of a server that a test plays.
type stage struct {
	*testing.T
	lens   *Lens
	client *http.Client
}

func newStage(t *testing.T, o Options, serve http.HandlerFunc) *stage {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	if o.Upstream == nil {
		o.Upstream = &rest.Config{Host: server.URL + "/prefix", BearerToken: "upstream"}
	}
	proxy, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := rest.HTTPClientFor(proxy.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, proxy, client}
}

// reply is an answer, whose body is closed when the test ends.
type reply struct{ *http.Response }

func (s *stage) request(method, path, body string, header ...string) reply {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.lens.Config().Host+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { response.Body.Close() })
	return reply{response}
}

func (s *stage) read(response reply) string {
	s.Helper()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(data)
}

// events are all that the lens has seen so far.
func (s *stage) events() (all []Event) {
	s.Helper()
	if err := s.lens.Flush(s.Context()); err != nil {
		s.Fatal(err)
	}
	all, _, _, _ = s.lens.stream.since(0)
	return all
}

// lastRequest waits for a request to be complete: its answer is read a moment before.
func (s *stage) lastRequest() *Request {
	s.Helper()
	var found *Request
	testenv.Eventually(s.T, "the request is in the stream", func() error {
		for _, e := range s.events() {
			if e.Request != nil && !e.Request.Open {
				found = e.Request
			}
		}
		if found == nil {
			return errors.New("it is not")
		}
		return nil
	})
	return found
}

func TestRequestsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 1)
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		seen <- r
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", `299 - "careful"`)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"}}`)
	})
	const query = "fieldManager=me&odd=%zz;&empty"
	response := s.request(http.MethodPost, "/api/v1/namespaces/b/configmaps?"+query, `{"some":"body"}`,
		"Content-Type", "application/json", "X-Own", "kept", ReconcileHeader, "12", SourceHeader, "a.go:1", "Impersonate-User", "somebody", "User-Agent", "thing/1.0")
	if text := s.read(response); response.StatusCode != http.StatusCreated || !strings.Contains(text, `"uid":"u"`) || response.Header.Get("Warning") == "" {
		t.Errorf("the answer is %d %s with %v", response.StatusCode, text, response.Header)
	}
	r := <-seen
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path != "/prefix/api/v1/namespaces/b/configmaps" || r.URL.RawQuery != query || string(body) != `{"some":"body"}` {
		t.Errorf("the server got %s?%s with %s", r.URL.Path, r.URL.RawQuery, body)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer upstream", "X-Own": "kept", ReconcileHeader: "", SourceHeader: "", "Impersonate-User": "somebody", "User-Agent": "thing/1.0",
		"X-Forwarded-For": "",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("header %s is %q instead of %q", name, got, want)
		}
	}
	got := s.lastRequest()
	if got.Verb != "create" || got.Status != http.StatusCreated || got.Reconcile != 12 || got.FieldManager != "me" || got.As != "somebody" ||
		got.Object == nil || got.Object.UID != "u" || got.Object.Kind != "ConfigMap" || got.Resource.Namespace != "b" || got.BytesIn != 15 {
		t.Errorf("recorded is %+v with %+v", got, got.Object)
	}
}

func TestOnlyItsOwnClientIsServed(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{}, func(http.ResponseWriter, *http.Request) { t.Error("a request was forwarded") })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.lens.authority)
	other := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	for _, credential := range []string{"", "Bearer wrong", "Bearer ", "Basic " + s.lens.token, "Bearer " + s.lens.token + "x"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.lens.Config().Host+"/api", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", credential)
		response, err := other.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("with %q the answer is %s", credential, response.Status)
		}
	}
	if len(s.events()) > 0 {
		t.Error("requests of others are recorded")
	}
	select {
	case <-s.lens.Used():
		t.Error("requests of others count as the operator's")
	default:
	}
}

func TestKubeconfigLeadsThroughTheLens(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{Namespace: "shop"}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	kubeconfig, err := s.lens.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.NewClientConfigFromBytes(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if namespace, _, err := loaded.Namespace(); namespace != "shop" || err != nil {
		t.Errorf("the namespace is %q, %v", namespace, err)
	}
	config, err := loaded.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(config.Host + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text := s.read(reply{response}); text != "ok" {
		t.Errorf("the answer is %q", text)
	}
	<-s.lens.Used()
}

func TestCompressedAnswersStayCompressed(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		fmt.Fprint(zip, `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`)
		zip.Close()
	})
	response := s.request(http.MethodGet, "/api/v1/pods", "", "Accept-Encoding", "gzip")
	if response.Header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(s.read(response), "\x1f\x8b") {
		t.Error("the answer was unpacked on its way")
	}
	if got := s.lastRequest(); got.Verb != "list" || got.Items != 2 || got.Undecoded != "" {
		t.Errorf("recorded is %+v", got)
	}
}

func TestWatchEventsArriveAtOnce(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case event := <-next:
				fmt.Fprintln(w, event)
				w.(http.Flusher).Flush()
			}
		}
	})
	response := s.request(http.MethodGet, "/apis/apps/v1/deployments?watch=true&allowWatchBookmarks=true&resourceVersion=1", "")
	lines := bufio.NewReader(response.Body)
	event := func(kind, version string, replicas int) string {
		return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":%q},"spec":{"replicas":%d}}}`,
			kind, version, replicas)
	}
	// Each arrives before the next is sent.
	for _, sent := range []string{event("ADDED", "2", 1), event("MODIFIED", "3", 5), event("DELETED", "4", 5)} {
		next <- sent
		if got, err := lines.ReadString('\n'); strings.TrimSpace(got) != sent || err != nil {
			t.Fatalf("received %q, %v", got, err)
		}
	}
	response.Body.Close()
	if got := s.lastRequest(); got.Verb != "watch" || got.Error != "" || got.BytesOut == 0 {
		t.Errorf("the end of the watch is recorded as %+v", got)
	}
	var opened bool
	var deliveries []*Delivery
	for _, e := range s.events() {
		opened = opened || e.Request != nil && e.Request.Open
		if e.Delivery != nil {
			deliveries = append(deliveries, e.Delivery)
		}
	}
	if !opened || len(deliveries) != 3 {
		t.Fatalf("the begin of the watch is recorded: %v, and %d deliveries", opened, len(deliveries))
	}
	changed := deliveries[1].Change
	if deliveries[0].Change != nil || changed == nil || len(changed.Fields) != 1 || changed.Fields[0].Path != "spec.replicas" ||
		changed.Fields[0].Old != "1" || changed.Fields[0].New != "5" || changed.From != "2" || deliveries[2].Type != "DELETED" {
		t.Errorf("deliveries: %+v, change %+v", deliveries, changed)
	}
}

// TestInformersThatBeginWithAList reads what those of client-go before 0.35 do: a list of any version, and a watch from there on.
func TestInformersThatBeginWithAList(t *testing.T) {
	t.Parallel()
	const item = `"metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"2"},"spec":{"replicas":1}`
	const changed = `{"type":"MODIFIED","object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"3"},"spec":{"replicas":5}}}`
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			fmt.Fprintln(w, changed)
			return
		}
		fmt.Fprintf(w, `{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{"resourceVersion":"2"},"items":[{%s}]}`, item)
	})
	deliveries := func() (all []*Delivery) {
		for _, e := range s.events() {
			if e.Delivery != nil {
				all = append(all, e.Delivery)
			}
		}
		return all
	}
	s.read(s.request(http.MethodGet, "/apis/apps/v1/deployments", ""))
	s.read(s.request(http.MethodGet, "/apis/apps/v1/deployments?resourceVersion=2&resourceVersionMatch=Exact", ""))
	s.lastRequest()
	if got := deliveries(); len(got) != 0 {
		t.Errorf("lists of others deliver %+v", got)
	}
	s.read(s.request(http.MethodGet, "/apis/apps/v1/deployments?limit=500&resourceVersion=0", ""))
	s.read(s.request(http.MethodGet, "/apis/apps/v1/deployments?watch=true&resourceVersion=2", ""))
	var got []*Delivery
	testenv.Eventually(t, "the objects of the list and the event are delivered", func() error {
		if got = deliveries(); len(got) != 2 {
			return fmt.Errorf("%d deliveries", len(got))
		}
		return nil
	})
	if d := got[0]; !d.Initial || d.Type != "ADDED" || d.Object.Kind != "Deployment" || d.Object.Name != "web" || d.Change != nil {
		t.Errorf("listed: %+v", d)
	}
	if d := got[1]; d.Initial || d.Change == nil || len(d.Change.Fields) != 1 || d.Change.Fields[0].Path != "spec.replicas" {
		t.Errorf("changed: %+v", d)
	}
}

func TestServerThatIsAway(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	s := newStage(t, Options{Upstream: &rest.Config{Host: "http://" + address}}, nil)
	response := s.request(http.MethodPost, "/api/v1/namespaces/b/configmaps", "{}", "Content-Type", "application/json")
	text := s.read(response)
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "the API server is not available") || response.Header.Get("Retry-After") != "" {
		t.Errorf("the answer is %s: %s", response.Status, text)
	}
	if got := s.lastRequest(); got.Error == "" || got.Status != http.StatusServiceUnavailable {
		t.Errorf("recorded is %+v", got)
	}
}

func TestAnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]http.HandlerFunc{
		"before it begins": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"in the middle": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"apiVersion":`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, Options{}, serve)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.lens.Config().Host+"/api/v1/namespaces", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := s.client.Do(request)
			if err == nil {
				_, err = io.ReadAll(response.Body)
				response.Body.Close()
			}
			if err == nil {
				t.Error("the client has not noticed")
			}
			if got := s.lastRequest(); got.Error == "" {
				t.Errorf("recorded is %+v", got)
			}
		})
	}
}

func TestUpgradesPass(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "SPDY/3.1" || r.Header.Get("Authorization") != "Bearer upstream" {
			t.Errorf("the server got %v", r.Header)
		}
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		fmt.Fprint(conn, "echo "+line)
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.lens.authority)
	conn, err := tls.Dial("tcp", s.lens.address, &tls.Config{RootCAs: pool, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/v1/namespaces/a/pods/b/exec?command=ls HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", s.lens.token)
	answers := bufio.NewReader(conn)
	response, err := http.ReadResponse(answers, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the answer is %v, %v", response, err)
	}
	defer response.Body.Close()
	fmt.Fprintln(conn, "hello")
	if line, err := answers.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("the answer is %q, %v", line, err)
	}
	if got := s.lastRequest(); got.Verb != "create" || got.Resource.Subresource != "exec" || got.IsWrite() {
		t.Errorf("recorded is %+v", got)
	}
}

func TestImpersonationIsNotDoubled(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{Upstream: &rest.Config{Host: "http://127.0.0.1:1", Impersonate: rest.ImpersonationConfig{UserName: "operator"}}}, nil)
	response := s.request(http.MethodGet, "/api/v1/pods", "", "Impersonate-User", "admin")
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("the answer is %s", response.Status)
	}
}

// script is Faults that a test writes.
type script struct {
	request func(*Call) Verdict
	answer  func(*Call, int) Verdict
	deliver func(context.Context, *Frame) Verdict
}

func (s *script) Request(_ context.Context, c *Call) Verdict {
	if s.request == nil {
		return Verdict{}
	}
	return s.request(c)
}

func (s *script) Answer(_ context.Context, c *Call, status int) Verdict {
	if s.answer == nil {
		return Verdict{}
	}
	return s.answer(c, status)
}

func (s *script) Deliver(ctx context.Context, _ *Call, f *Frame) Verdict {
	if s.deliver == nil {
		return Verdict{}
	}
	return s.deliver(ctx, f)
}

func TestFaultsInRequests(t *testing.T) {
	t.Parallel()
	forwarded := make(chan string, 10)
	serve := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		forwarded <- string(body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`)
	}
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	send := func(s *stage) (*http.Response, error) {
		request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.lens.Config().Host+"/api/v1/namespaces/b/configmaps", strings.NewReader(body))
		if err != nil {
			s.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		return s.client.Do(request)
	}
	t.Run("refused before it is sent", func(t *testing.T) {
		s := newStage(t, Options{Faults: &script{request: func(c *Call) Verdict {
			if object := c.Body(); object == nil || object.GetName() != "a" || c.Request.Verb != "create" {
				t.Errorf("asked about %+v with %v", c.Request, object)
			}
			return Verdict{Action: Refuse, Answer: status(http.StatusConflict, metav1.StatusReasonConflict, "no"), Say: "conflict", Header: http.Header{"Retry-After": {"1"}}}
		}}}, serve)
		response, err := send(s)
		if err != nil || response.StatusCode != http.StatusConflict || response.Header.Get("Retry-After") != "1" {
			t.Fatalf("the answer is %v, %v", response, err)
		}
		response.Body.Close()
		if got := s.lastRequest(); got.Fault != "conflict" || got.Reason != "Conflict" || len(forwarded) != 0 {
			t.Errorf("recorded is %+v, and %d requests were forwarded", got, len(forwarded))
		}
	})
	t.Run("the answer is lost", func(t *testing.T) {
		s := newStage(t, Options{Faults: &script{answer: func(*Call, int) Verdict { return Verdict{Action: Abort, Say: "lost"} }}}, serve)
		if response, err := send(s); err == nil {
			response.Body.Close()
			t.Errorf("the answer is %s", response.Status)
		}
		if got := <-forwarded; got != body {
			t.Errorf("forwarded was %q", got)
		}
		if got := s.lastRequest(); got.Fault != "lost" {
			t.Errorf("recorded is %+v", got)
		}
	})
	t.Run("passed on", func(t *testing.T) {
		s := newStage(t, Options{Faults: &script{answer: func(*Call, int) Verdict { return Verdict{Say: "killed after the answer"} }}}, serve)
		response, err := send(s)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("the answer is %v, %v", response, err)
		}
		response.Body.Close()
		if got := <-forwarded; got != body {
			t.Errorf("forwarded was %q", got)
		}
		if got := s.lastRequest(); got.Fault != "killed after the answer" || got.Status != http.StatusOK {
			t.Errorf("recorded is %+v", got)
		}
	})
}

// A list can be answered with what there was. What else the client asks for stays, and other requests are as they were.
func TestListsOfThePast(t *testing.T) {
	t.Parallel()
	forwarded := make(chan string, 10)
	s := newStage(t, Options{Faults: &script{request: func(*Call) Verdict { return Verdict{AsOf: "17", Say: "old"} }}}, func(w http.ResponseWriter, r *http.Request) {
		forwarded <- r.URL.RawQuery
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"17"},"items":[]}`)
	})
	for path, want := range map[string]string{
		"/api/v1/pods?limit=500&resourceVersion=0":                                 "limit=500&resourceVersion=17&resourceVersionMatch=Exact",
		"/api/v1/pods?resourceVersion=0&resourceVersionMatch=NotOlderThan":         "resourceVersion=17&resourceVersionMatch=Exact",
		"/api/v1/namespaces/b/pods/a?resourceVersion=0":                            "resourceVersion=0",
		"/api/v1/pods?watch=1&resourceVersion=3&resourceVersionMatch=NotOlderThan": "watch=1&resourceVersion=3&resourceVersionMatch=NotOlderThan",
	} {
		s.request(http.MethodGet, path, "").Body.Close()
		if got := <-forwarded; got != want {
			t.Errorf("%s is forwarded with %s, want %s", path, got, want)
		}
	}
}

func TestFaultsInWatches(t *testing.T) {
	t.Parallel()
	event := func(name string) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"b","uid":%q,"resourceVersion":"1"}}}`, name, name)
	}
	release := make(chan struct{})
	s := newStage(t, Options{Faults: &script{deliver: func(ctx context.Context, f *Frame) Verdict {
		switch f.Object.GetName() {
		case "dropped":
			return Verdict{Action: Drop}
		case "held":
			select {
			case <-release:
			case <-ctx.Done():
			}
		case "end":
			return Verdict{Action: End}
		}
		return Verdict{}
	}}}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, name := range []string{"first", "dropped", "held", "last", "end", "never"} {
			fmt.Fprintln(w, event(name))
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	response := s.request(http.MethodGet, "/api/v1/pods?watch=1", "")
	lines := bufio.NewScanner(response.Body)
	for _, want := range []string{"first", "held", "last"} {
		if want == "held" {
			close(release)
		}
		if !lines.Scan() || lines.Text() != event(want) {
			t.Fatalf("received %q instead of %s: %v", lines.Text(), want, lines.Err())
		}
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("the watch goes on with %q, %v", lines.Text(), lines.Err())
	}
	var said []string
	testenv.Eventually(t, "the end of the watch is recorded", func() error {
		said = nil
		for _, e := range s.events() {
			switch {
			case e.Delivery != nil:
				said = append(said, e.Delivery.Object.Name+" "+e.Delivery.Fault)
			case e.Request != nil && !e.Request.Open:
				return nil
			}
		}
		return errors.New("it is not")
	})
	if got := strings.Join(said, ","); got != "first ,dropped dropped,held ,last " {
		t.Errorf("recorded are %q", got)
	}
}

func TestSlowReadersDelayNoOther(t *testing.T) {
	t.Parallel()
	s := newStream(64 << 10)
	for i := range 1000 {
		s.add(Event{At: time.Now(), Request: &Request{ID: uint64(i), Verb: "get", Message: strings.Repeat("x", 200)}})
	}
	if s.size > 64<<10 {
		t.Errorf("%d bytes are kept", s.size)
	}
	s.close()
	seen, missing := uint64(0), uint64(0)
	for _, lost := range s.Follow(t.Context(), 0) {
		seen++
		missing += lost
	}
	if seen+missing != 1000 || missing == 0 || s.Totals().Uses[0].Count != 1000 {
		t.Errorf("%d were seen and %d missed, and the totals are %+v", seen, missing, s.Totals().Uses[0])
	}
}

// TestDeliveryThatIsFasterThanTheAnswer shows a version by a watch before the write that made it is answered.
func TestDeliveryThatIsFasterThanTheAnswer(t *testing.T) {
	t.Parallel()
	object := func(version string, replicas int) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":%q},"spec":{"replicas":%d}}`, version, replicas)
	}
	next, seen := make(chan string), make(chan struct{})
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPatch {
			next <- `{"type":"MODIFIED","object":` + object("8", 3) + `}`
			<-seen
			fmt.Fprint(w, object("8", 3))
			return
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case event := <-next:
				fmt.Fprintln(w, event)
				w.(http.Flusher).Flush()
			}
		}
	})
	watched := bufio.NewReader(s.request(http.MethodGet, "/apis/apps/v1/deployments?watch=true", "").Body)
	next <- `{"type":"ADDED","object":` + object("7", 1) + `}`
	go func() {
		defer close(seen)
		for range 2 {
			if _, err := watched.ReadString('\n'); err != nil {
				t.Error(err)
			}
		}
		if err := s.lens.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	s.read(s.request(http.MethodPatch, "/apis/apps/v1/namespaces/shop/deployments/web", "{}", "Content-Type", "application/merge-patch+json"))
	got := s.lastRequest()
	if got.Change == nil || got.Change.None || len(got.Change.Fields) != 1 || got.Change.Fields[0].Path != "spec.replicas" || got.Change.From != "7" || got.Delivered == 0 {
		t.Errorf("the write is %+v, and changed %+v", got, got.Change)
	}
	if s.lens.Stream().Totals().Echoes != 1 {
		t.Errorf("%d echoes are counted", s.lens.Stream().Totals().Echoes)
	}
	// Written once more, it changes nothing.
	go func() { <-next }()
	again := s.request(http.MethodPatch, "/apis/apps/v1/namespaces/shop/deployments/web", "{}", "Content-Type", "application/merge-patch+json")
	s.read(again)
	testenv.Eventually(t, "the second write is recorded", func() error {
		if got := s.lastRequest(); got.ID == 2 {
			return errors.New("it is not")
		} else if got.Change == nil || !got.Change.None {
			return fmt.Errorf("it changed %+v", got.Change)
		}
		return nil
	})
}
