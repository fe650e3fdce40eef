// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

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
	send(credential, "nonsense", mark(2), `{"at":"2026-03-01T12:00:00Z","dropped":3}`)
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
		if got := strings.Join(said, ", "); got != "reconcile 2, lost 3" {
			return errors.New(got)
		}
		return nil
	})
}
