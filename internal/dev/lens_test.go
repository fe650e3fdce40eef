// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/story"
	"github.com/opdock/opdock/why"
)

// Each start of an operator and each end is in the recording, in order and also after a crash.
func TestProcessesAreRecorded(t *testing.T) {
	proxy, err := lens.Start(t.Context(), lens.Options{Upstream: &rest.Config{Host: "https://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	l := &lensing{proxy: proxy}
	const forever = "while :; do sleep 0.02; done"
	for _, script := range []string{"kill -9 $$", "exit 3", forever} {
		l.begin("", false)
		p, _ := shell(t, script)
		l.ends(p)
		if script == forever {
			p.stop(patience)
		}
		awaitEnd(t, p)
	}
	l.running.Wait()
	if err := proxy.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for event := range proxy.Stream().Follow(t.Context(), 0) {
		if event.Process.Started {
			got = append(got, "started")
		} else {
			got = append(got, event.Process.How)
		}
	}
	if want := []string{"started", "was terminated by signal killed", "started", "exited with status 3", "started", "was stopped"}; !slices.Equal(got, want) {
		t.Errorf("recorded is %q", got)
	}
}

// The user learns, once, that reconciles are guessed although the build was to mark them.
func TestAnOperatorWithoutMarksIsNoted(t *testing.T) {
	t.Parallel()
	var told []*why.Record
	var said []string
	l := &lensing{
		teller: story.New(func(r *why.Record) { told = append(told, r) }), say: func(text string) { said = append(said, text) }, strangers: func() uint64 { return 0 },
	}
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for range 2 { // two processes
		l.teller.Add(&lens.Event{At: began, Process: &lens.Process{Started: true, Instrumented: true}})
		l.teller.Add(&lens.Event{At: began, Request: &lens.Request{Verb: "update", Status: 200, Resource: lens.Resource{Version: "v1", Resource: "configmaps", Namespace: "a", Name: "b"}}})
		for range 50 {
			began = began.Add(settleInterval)
			l.settle(began)
		}
	}
	if len(told) != 2 || len(said) != 1 || !strings.Contains(said[0], "reconciles are inferred") {
		t.Errorf("%d reconciles were shown, and %q was said", len(told), said)
	}
}

// An operator that takes only the address from its kubeconfig is refused, which its log may not explain.
func TestRefusedRequestsAreNoted(t *testing.T) {
	t.Parallel()
	var said []string
	refused := uint64(0)
	l := &lensing{teller: story.New(func(*why.Record) {}), say: func(text string) { said = append(said, text) }, strangers: func() uint64 { return refused }}
	for range 3 {
		l.settle(time.Now())
		refused++
	}
	if len(said) != 1 || !strings.Contains(said[0], "without the credential") {
		t.Errorf("%q was said", said)
	}
}
