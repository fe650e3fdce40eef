// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/testenv"
)

func TestMarksNeedACredential(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{}, func(http.ResponseWriter, *http.Request) {})
	address, credential, _ := strings.Cut(s.lens.HookAddress(), "/")
	if credential == s.lens.token || strings.Contains(s.lens.HookAddress(), s.lens.token) {
		t.Error("marks have the credential that requests have")
	}
	send := func(lines ...string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		for _, line := range lines {
			fmt.Fprintln(conn, line)
		}
		return conn
	}
	mark := func(id int) string {
		return fmt.Sprintf(`{"at":"2026-03-01T12:00:00Z","reconcile":{"id":%d,"controller":"shop","name":"web","error":"Secret \"keys\" is invalid: 482913"}}`, id)
	}
	// A client without the credential is disconnected, and its marks are ignored.
	for _, wrong := range []string{"", "wrong", s.lens.token} {
		if n, err := send(wrong, mark(1)).Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("with %q: %d, %v", wrong, n, err)
		}
	}
	send(credential, "nonsense", strings.Repeat("x", maxMark+1), mark(2), `{"at":"2026-03-01T12:00:00Z","dropped":3}`)
	testenv.Eventually(t, "the mark is in the stream", func() error {
		var said []string
		for _, e := range s.events() {
			switch {
			case e.Reconcile != nil:
				said = append(said, fmt.Sprint("reconcile ", e.Reconcile.ID))
				if !strings.HasPrefix(e.Reconcile.Error, `Secret "keys" is invalid: (`) {
					t.Errorf("its error is %q", e.Reconcile.Error)
				}
			case e.Lost != nil:
				said = append(said, fmt.Sprint("lost ", e.Lost.Events))
			}
		}
		if got := strings.Join(said, ", "); got != "lost 1, reconcile 2, lost 3" {
			return errors.New(got)
		}
		return nil
	})
}

// Another user of the machine may connect, but cannot keep the operator from doing so.
func TestConnectionsWithoutACredentialBlockNothing(t *testing.T) {
	t.Parallel()
	emitted := make(chan Event, 1)
	h, err := listenForHooks(t.Context(), func(e Event) { emitted <- e })
	if err != nil {
		t.Fatal(err)
	}
	address, credential, _ := strings.Cut(h.address(), "/")
	connect := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var silent []net.Conn
	for range maxGreetings + maxHooks {
		silent = append(silent, connect())
	}
	began := time.Now()
	fmt.Fprintf(connect(), "%s\n{\"reconcile\":{\"id\":1,\"controller\":\"shop\",\"name\":\"web\"}}\n", credential)
	select {
	case e := <-emitted:
		if e.Reconcile == nil || e.Reconcile.Name != "web" {
			t.Errorf("emitted is %+v", e)
		}
	case <-time.After(greeting - time.Since(began)):
		t.Fatal("the mark has not arrived before the others were disconnected")
	}
	// Their number is bounded: the first one is disconnected for the last one.
	if err := silent[0].SetReadDeadline(began.Add(greeting / 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first connection: %v", err)
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
}
