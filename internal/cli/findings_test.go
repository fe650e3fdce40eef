// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/internal/tree"
	"github.com/opdock/opdock/why"
)

// A run without a terminal says once what goes wrong.
func TestRunSaysFindings(t *testing.T) {
	s := newConsole(nil)
	r := testRun(s)
	r.findings = findings.NewTracker()
	show := r.newShow(noon)
	defer show.end()
	for range 5 {
		r.findings.Add(&why.Record{
			Controller: "robot", Object: why.Object{Kind: "Robot", Name: "arm"}, Start: r.Now(), Outcome: why.Failed, Error: "no such deployment",
		})
		show.update(tree.Snapshot{})
	}
	const want = `Robot arm fails: the last 3 reconciles ended with "no such deployment".`
	if got := s.err.String(); strings.Count(got, "Robot arm fails") != 1 || !strings.Contains(got, want) {
		t.Errorf("%q is not said once:\n%s", want, got)
	}
}

// The terminal of opdock dev says that the operator loops, even if no page is served.
func TestDevSaysFindings(t *testing.T) {
	recorder := why.New(why.Options{})
	operator := httptest.NewServer(http.StripPrefix("/why", recorder.HTTPHandler()))
	t.Cleanup(func() {
		operator.CloseClientConnections()
		operator.Close()
	})
	s := newConsole(nil)
	show, session := s.newDevShow(devOptions{}), &dev.Session{}
	end, err := s.serveDevPage(t.Context(), devOptions{}, nil, show, session)
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
	said := func() string {
		show.display.mu.Lock()
		defer show.display.mu.Unlock()
		return s.err.String()
	}
	const want = "! Frigate black is in a loop: it has caused itself 5 times in a row."
	for until := time.Now().Add(20 * time.Second); !strings.Contains(said(), want); {
		if time.Now().After(until) {
			t.Fatalf("%q is not said:\n%s", want, said())
		}
		time.Sleep(10 * time.Millisecond)
	}
	session.Observer.End()
	end()
	show.end()
}
