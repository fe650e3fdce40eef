// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// versionsOfHTTP are clients by what they know.
var versionsOfHTTP = map[string]func(*rest.Config) (http.RoundTripper, error){"HTTP/1.1": onlyHTTP1, "HTTP/2": onlyHTTP2}

func (s *stage) use(client func(*rest.Config) (http.RoundTripper, error)) {
	s.Helper()
	transport, err := client(s.lens.Config())
	if err != nil {
		s.Fatal(err)
	}
	s.client = &http.Client{Transport: transport}
}

// An API server refuses what is too large for it without reading it. The client gets that answer, and not what the rest of the
// body looks like as a request.
func TestRefusedBeforeItIsRead(t *testing.T) {
	t.Parallel()
	server := secureServer(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			fmt.Fprint(w, "too large")
			return
		}
		fmt.Fprint(w, "next")
	})
	for name, client := range versionsOfHTTP {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, Options{Upstream: configOf(server)}, nil)
			s.use(client)
			large, small := strings.Repeat("GET / HTTP/1.1\r\n\r\n", 1<<20), strings.Repeat("GET / HTTP/1.1\r\n\r\n", 1<<10)
			for _, body := range []io.Reader{
				strings.NewReader(large), strings.NewReader(large),
				io.MultiReader(strings.NewReader(small)), io.MultiReader(strings.NewReader(large)), // of unknown length
			} {
				refused := s.send(http.MethodPost, "/api/v1/namespaces/b/configmaps", body, "Content-Type", "application/json")
				if got := s.read(refused); refused.StatusCode != http.StatusRequestEntityTooLarge || got != "too large" {
					t.Errorf("the answer is %s %q", refused.Status, got)
				}
				if refused.ProtoMajor == 1 && !refused.Close {
					t.Error("the connection stays open, with the rest of the body in it")
				}
				if got := s.read(s.request(http.MethodGet, "/next", "")); got != "next" {
					t.Errorf("the next answer is %q", got)
				}
			}
		})
	}
}

// An application behind the API server may answer before it has the whole request.
func TestAnswersWhileTheRequestIsSent(t *testing.T) {
	t.Parallel()
	server := secureServer(t, "", func(w http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 100)
		for {
			n, err := r.Body.Read(buffer)
			fmt.Fprintf(w, "%s!", buffer[:n])
			w.(http.Flusher).Flush()
			if err != nil {
				return
			}
		}
	})
	for name, client := range versionsOfHTTP {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, Options{Upstream: configOf(server)}, nil)
			s.use(client)
			body, questions := io.Pipe()
			sent := make(chan error, 1)
			go func() {
				_, err := questions.Write([]byte("one"))
				sent <- err
			}()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.lens.Config().Host+"/api/v1/namespaces/b/services/c/proxy/echo", body)
			if err != nil {
				t.Fatal(err)
			}
			response, err := s.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			answer := make([]byte, len("one!"))
			if _, err := io.ReadFull(response.Body, answer); err != nil || string(answer) != "one!" {
				t.Fatalf("the first answer is %q, %v", answer, err)
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := questions.Write([]byte("two"))
				sent <- err
				questions.Close()
			}()
			if rest, err := io.ReadAll(response.Body); err != nil || !strings.HasPrefix(string(rest), "two!") {
				t.Errorf("the second answer is %q, %v", rest, err)
			}
		})
	}
}

// A client that waits in the middle of a request gets the answer that does not wait for the rest, to its end.
func TestRefusedWhileTheRequestPauses(t *testing.T) {
	t.Parallel()
	const refusal = "forbidden"
	for how, length := range map[string]string{"with its length": strconv.Itoa(len(refusal)), "of unknown length": ""} {
		server := secureServer(t, "", func(w http.ResponseWriter, _ *http.Request) {
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, refusal)
		})
		for name, client := range versionsOfHTTP {
			for where, isNear := range map[string]bool{"near": true, "far": false} {
				t.Run(name+" "+where+" "+how, func(t *testing.T) {
					t.Parallel()
					s := newStage(t, Options{Upstream: configOf(server), Near: isNear}, nil)
					s.use(client)
					body, rest := io.Pipe()
					defer rest.Close()
					go func() { _, _ = rest.Write([]byte("one")) }()
					refused := s.send(http.MethodPost, "/api/v1/namespaces/b/configmaps", body)
					if got := s.read(refused); got != refusal {
						t.Errorf("the answer is %q", got)
					}
				})
			}
		}
	}
}
