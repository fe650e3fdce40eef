// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

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
	if refused := s.lens.Strangers(); refused != 5 {
		t.Errorf("%d requests of others were counted", refused)
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

func TestServerThatIsAway(t *testing.T) {
	t.Parallel()
	// A port of the system, and not one that was free a moment ago: the servers of other tests get such ports.
	s := newStage(t, Options{Upstream: &rest.Config{Host: "http://127.0.0.1:1"}}, nil)
	response := s.request(http.MethodPost, "/api/v1/namespaces/b/configmaps", "{}", "Content-Type", "application/json")
	text := s.read(response)
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "the API server is not available") || response.Header.Get("Retry-After") != "" {
		t.Errorf("the answer is %s: %s", response.Status, text)
	}
	if got := s.lastRequest(); got.Error == "" || got.Status != http.StatusServiceUnavailable {
		t.Errorf("recorded is %+v", got)
	}
}

// TestWatchesWhileTheServerIsAway expects 429: after any other error, an informer lists everything again.
func TestWatchesWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{Upstream: &rest.Config{Host: "http://127.0.0.1:1"}}, nil)
	response := s.request(http.MethodGet, "/api/v1/pods?watch=true&resourceVersion=5", "")
	if text := s.read(response); response.StatusCode != http.StatusTooManyRequests || !strings.Contains(text, `"TooManyRequests"`) || response.Header.Get("Retry-After") != "" {
		t.Errorf("the answer is %s: %s", response.Status, text)
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

// A connection by WebSocket begins with a GET, for which newer API servers also require create.
func TestUpgradesImplyCreate(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		verb, subresource string
		want              int
	}{{"get", "exec", 1}, {"get", "attach", 1}, {"get", "portforward", 1}, {"get", "proxy", 0}, {"create", "exec", 0}, {"get", "", 0}} {
		place := Resource{Version: "v1", Resource: "pods", Subresource: one.subresource, Namespace: "a", Name: "b"}
		got := impliedByUpgrade(&Request{Verb: one.verb, Resource: place})
		if len(got) != one.want || len(got) > 0 && (got[0].Verb != "create" || got[0].Resource != place) {
			t.Errorf("%s %s: %+v", one.verb, one.subresource, got)
		}
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
