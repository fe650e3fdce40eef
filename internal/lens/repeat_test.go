// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"k8s.io/client-go/rest"
)

// TestWritesAreSentAgain has an API server that ends its first connection with GOAWAY before it handles a write.
func TestWritesAreSentAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "got %s", body)
	}))
	server.EnableHTTP2 = true
	listener := &leaving{Listener: server.Listener, server: server}
	server.Listener = listener
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	s := newStage(t, Options{Upstream: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}}, nil)
	response := s.request(http.MethodPost, "/api/v1/namespaces/b/configmaps", `{"some":"body"}`, "Content-Type", "application/json")
	if text := s.read(response); response.StatusCode != http.StatusCreated || text != `got {"some":"body"}` {
		t.Errorf("the answer is %s: %s", response.Status, text)
	}
	if count := listener.accepted.Load(); count != 2 {
		t.Errorf("there were %d connections", count)
	}
}

// leaving refuses what comes by the first connection.
type leaving struct {
	net.Listener
	server   *httptest.Server
	accepted atomic.Int32
}

func (l *leaving) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil && l.accepted.Add(1) == 1 {
		go goAway(tls.Server(conn, l.server.TLS))
		return l.Accept()
	}
	return conn, err
}

// goAway says that a connection ends once the body of a request has arrived. It does not report errors: the test fails
// without it.
func goAway(conn net.Conn) {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		return
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return // the client has closed the connection
		}
		if data, ok := frame.(*http2.DataFrame); ok && data.StreamEnded() {
			_ = framer.WriteGoAway(0, http2.ErrCodeNo, nil)
		}
	}
}
