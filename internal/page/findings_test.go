// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/why"
)

// looping is a reconcile that is part of a loop.
func looping(name string) *why.Record {
	return &why.Record{
		ID: 1, Controller: "ships", Object: why.Object{Kind: "Frigate", Name: name}, Start: time.Now(), Outcome: why.Succeeded,
		Findings: []why.Finding{{Type: why.Loop, Message: "has caused itself 5 times in a row"}},
	}
}

// A page is told what goes wrong, and that it is over; one that comes back is told so as well.
func TestStreamHasFindings(t *testing.T) {
	tracker := findings.NewTracker()
	server := serve(t, Options{Findings: tracker})
	follower := followStream(t, server, "")
	var message findingMessage
	if follower.next(t, "findings", &message); len(message.Findings) != 0 {
		t.Fatalf("it begins with %+v", message)
	}
	tracker.Add(looping("black"))
	if follower.next(t, "findings", &message); len(message.Findings) != 1 || !strings.HasPrefix(message.Findings[0].Sentence, "Frigate black is in a loop: it has caused itself 5 times in a row.") {
		t.Fatalf("then it tells %+v", message)
	}
	tracker.Reset()
	message = findingMessage{}
	if follower.next(t, "findings", &message); len(message.Findings) != 0 {
		t.Errorf("when it is over it tells %+v", message)
	}
	message.Findings = []findings.Finding{{}}
	if followStream(t, server, follower.id).next(t, "findings", &message); len(message.Findings) != 0 {
		t.Errorf("who comes back is told %+v", message)
	}
}

// What goes wrong in a process is over when the next one begins.
func TestARelayTracksFindings(t *testing.T) {
	relay := NewRelay()
	t.Cleanup(relay.End)
	first := startOperator(t)
	relay.Begin(first.address())
	first.recorder.Gather(looping("black"))
	testenv.Eventually(t, "a loop is found", func() bool { return len(relay.Findings().At(time.Now())) == 1 })
	first.end()
	relay.Begin("")
	if found := relay.Findings().At(time.Now()); len(found) != 0 {
		t.Errorf("of the process before there is still %+v", found)
	}
}
