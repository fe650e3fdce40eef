// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/tree"
	"github.com/opdock/opdock/why"
)

// serve returns the page on a port of its own.
func serve(t *testing.T, o Options) *httptest.Server {
	t.Helper()
	handler, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// reply is what is left of a response once its body is read.
type reply struct {
	StatusCode int
	Header     http.Header
}

func ask(t *testing.T, server *httptest.Server, method, path string, change func(*http.Request)) (reply, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header}, string(body)
}

// The port of the requests below stands for the one that the server really has.
func TestOnlyRequestsToLoopbackAreAnswered(t *testing.T) {
	server := serve(t, Options{})
	port := server.URL[strings.LastIndex(server.URL, ":")+1:]
	for host, want := range map[string]int{
		"127.0.0.1:PORT": http.StatusOK, "localhost:PORT": http.StatusOK, "LOCALHOST:PORT": http.StatusOK, "[::1]:PORT": http.StatusOK,
		"127.1.2.3:PORT":       http.StatusOK,
		"127.0.0.1":            http.StatusMisdirectedRequest,
		"127.0.0.1:1":          http.StatusMisdirectedRequest,
		"evil.example:PORT":    http.StatusMisdirectedRequest,
		"127.0.0.1.evil:PORT":  http.StatusMisdirectedRequest,
		"localhost.evil:PORT":  http.StatusMisdirectedRequest,
		"192.168.1.2:PORT":     http.StatusMisdirectedRequest,
		"0.0.0.0:PORT":         http.StatusMisdirectedRequest,
		"evil.example":         http.StatusMisdirectedRequest,
		"[::ffff:7f00:1]:PORT": http.StatusOK,
	} {
		response, body := ask(t, server, http.MethodGet, "/api/tree", func(r *http.Request) { r.Host = strings.ReplaceAll(host, "PORT", port) })
		if response.StatusCode != want {
			t.Errorf("a request to %s gets %d, want %d: %s", host, response.StatusCode, want, body)
		}
	}
}

func TestForeignOriginsAreRefused(t *testing.T) {
	server := serve(t, Options{})
	header := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
	for name, test := range map[string]struct {
		path   string
		change func(*http.Request)
		want   int
	}{
		"a program":                      {"/api/tree", nil, http.StatusOK},
		"the page itself":                {"/api/tree", header("Origin", server.URL, "Sec-Fetch-Site", "same-origin"), http.StatusOK},
		"an address that is typed":       {"/", header("Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"), http.StatusOK},
		"another origin":                 {"/api/tree", header("Origin", "http://evil.example"), http.StatusForbidden},
		"another port":                   {"/api/tree", header("Origin", "http://127.0.0.1:1"), http.StatusForbidden},
		"an origin that is hidden":       {"/api/tree", header("Origin", "null"), http.StatusForbidden},
		"the same host by https":         {"/api/tree", header("Origin", strings.Replace(server.URL, "http:", "https:", 1)), http.StatusForbidden},
		"a picture in another page":      {"/logo.svg", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"), http.StatusForbidden},
		"another port of this machine":   {"/why/records", header("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		"a link to the page":             {"/", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), http.StatusOK},
		"a frame of another page":        {"/", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"), http.StatusForbidden},
		"a link to what is not the page": {"/api/tree", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := ask(t, server, http.MethodGet, test.path, test.change)
			if response.StatusCode != test.want {
				t.Errorf("%d, want %d: %s", response.StatusCode, test.want, body)
			}
			if allowed := response.Header.Get("Access-Control-Allow-Origin"); allowed != "" {
				t.Errorf("it is shared with %s", allowed)
			}
		})
	}
}

func TestEveryAnswerIsProtected(t *testing.T) {
	server := serve(t, Options{})
	for _, path := range []string{"/", "/app.js", "/api/tree", "/why/records", "/nothing"} {
		response, _ := ask(t, server, http.MethodGet, path, nil)
		policy := response.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
}

func TestNothingCanBeChanged(t *testing.T) {
	server := serve(t, Options{Records: why.New(why.Options{}).HTTPHandler()})
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "TRACE"} {
		for _, path := range []string{"/", "/api/tree", "/api/stream", "/why/records"} {
			if response, _ := ask(t, server, method, path, nil); response.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s gets %d", method, path, response.StatusCode)
			}
		}
	}
	if response, body := ask(t, server, http.MethodHead, "/", nil); response.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD gets %d and %q", response.StatusCode, body)
	}
}

func TestFilesAreCached(t *testing.T) {
	server := serve(t, Options{})
	first, body := ask(t, server, http.MethodGet, "/app.js", nil)
	if first.StatusCode != http.StatusOK || !strings.Contains(body, "import") || !strings.HasPrefix(first.Header.Get("Content-Type"), "text/javascript") {
		t.Fatalf("%d %s", first.StatusCode, first.Header.Get("Content-Type"))
	}
	again, body := ask(t, server, http.MethodGet, "/app.js", func(r *http.Request) { r.Header.Set("If-None-Match", first.Header.Get("ETag")) })
	if again.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("asked again it sends %d with %d bytes", again.StatusCode, len(body))
	}
	for _, path := range []string{"/static/app.js", "/../server.go", "/missing.js", "/why"} {
		if response, _ := ask(t, server, http.MethodGet, path, nil); response.StatusCode == http.StatusOK {
			t.Errorf("%s is answered", path)
		}
	}
}

// What the page loads has to be here: an address of elsewhere in a file would only be found by who is offline.
func TestFilesNameNoOtherHost(t *testing.T) {
	entries, err := static.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := static.ReadFile("static/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "") // a name, not an address
		for _, elsewhere := range []string{"http://", "https://", "//cdn", "innerHTML", "eval(", "style=\"", "onclick="} {
			if strings.Contains(text, elsewhere) {
				t.Errorf("%s contains %s", entry.Name(), elsewhere)
			}
		}
	}
}

func TestStreamHasTheTree(t *testing.T) {
	model := tree.NewModel()
	model.Set(tree.Object{
		Group: "app.example.com", Kind: "AppService", Namespace: "default", Name: "shop", UID: "1", Fleet: true, State: tree.Bad, Status: "Stalled",
		Conditions: []tree.Condition{{Type: "Ready", Status: "False", Reason: "CrashLoopBackOff", Message: "it crashes"}},
	})
	model.Set(tree.Object{Kind: "Secret", Namespace: "default", Name: "password", UID: "2", Owners: []types.UID{"1"}})
	_, body := ask(t, serve(t, Options{Title: "here", Tree: model}), http.MethodGet, "/api/tree", nil)
	var got treeMessage
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Title != "here" || !got.Whole || got.Recorded || len(got.Objects) != 2 {
		t.Fatalf("got %s", body)
	}
	shop := got.Objects[0]
	if shop.State != "bad" || !shop.Fleet || len(shop.Conditions) != 1 || shop.Conditions[0].Reason != "CrashLoopBackOff" {
		t.Errorf("got %+v", shop)
	}
}

func TestRecordsAreMounted(t *testing.T) {
	with := serve(t, Options{Records: why.New(why.Options{}).HTTPHandler()})
	for path, want := range map[string]string{"/why/records": `"records":[]`, "/why/summary": `"controllers":[]`} {
		if response, body := ask(t, with, http.MethodGet, path, nil); response.StatusCode != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
	if response, body := ask(t, serve(t, Options{}), http.MethodGet, "/why/records", nil); response.StatusCode != http.StatusNotFound {
		t.Errorf("without a recorder: %d %s", response.StatusCode, body)
	}
}
