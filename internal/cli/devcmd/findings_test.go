// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package devcmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/why"
)

// The terminal of opdock dev says that the operator loops, even if no page is served.
func TestDevPrintsFindings(t *testing.T) {
	recorder := why.New(why.Options{})
	operator := httptest.NewServer(http.StripPrefix("/why", recorder.HTTPHandler()))
	t.Cleanup(func() {
		operator.CloseClientConnections()
		operator.Close()
	})
	s := newConsole(nil)
	screen := &testenv.Buffer{}
	s.Err = screen
	a := verbs{s.App}
	show, session := a.newDevShow(devOptions{}), &dev.Session{}
	end, err := a.serveDevPage(t.Context(), devOptions{}, nil, show, session)
	if err != nil {
		t.Fatal(err)
	}
	session.Observer.Begin(strings.TrimPrefix(operator.URL, "http://"))
	for id := range uint64(20) {
		recorder.Gather(&why.Record{
			ID: id + 1, Controller: "ships", Object: why.Object{Kind: "Frigate", Name: "black"}, Start: time.Now(), Outcome: why.Succeeded,
			Findings: []why.Finding{{Type: why.Loop, Message: "has caused itself 5 times in a row"}},
		})
	}
	const want = "! Frigate black is in a loop: it has caused itself 5 times in a row."
	testenv.Eventually(t, "the finding is on the terminal", func() error {
		if !strings.Contains(screen.String(), want) {
			return fmt.Errorf("%q is missing:\n%s", want, screen.String())
		}
		return nil
	})
	session.Observer.End()
	end()
	show.end()
}
