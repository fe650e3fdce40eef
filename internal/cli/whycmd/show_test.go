// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package whycmd

import (
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/why"
)

func TestWhyNamesOnlyWritersThatAreKnown(t *testing.T) {
	web := &why.Object{Kind: "Deployment", Namespace: "default", Name: "web"}
	removed := why.Cause{Type: why.Updated, Object: web, Changes: []why.Change{{Path: "metadata.labels.tier", Old: `"web"`}}, Changed: 1}
	named, ours := removed, removed
	named.By = []why.Writer{{Manager: "kubectl"}}
	ours.Write = &why.WriteRef{Record: 41}
	for want, cause := range map[string]why.Cause{
		"updated Deployment default/web by an unknown writer\n": removed,
		"updated Deployment default/web by kubectl\n":           named,
		"updated Deployment default/web (written by #41)\n":     ours,
		"deleted Deployment default/web\n":                      {Type: why.Deleted, Object: web},
		"updated Deployment default/web\n":                      {Type: why.Updated, Object: web}, // metadata that is not reported
	} {
		var out strings.Builder
		(&whyShow{out: &out, location: time.UTC}).record(&why.Record{Causes: []why.Cause{cause}, Folded: 1})
		if !strings.Contains(out.String(), "• "+want) {
			t.Errorf("without %q:\n%s", want, &out)
		}
	}
}

// Two controllers can reconcile the same object, so what is not named like the kind is named.
func TestWhyNamesControllers(t *testing.T) {
	web := why.Object{Kind: "ConfigMap", Namespace: "default", Name: "web"}
	for want, record := range map[string]*why.Record{
		"00:00:00.000  ConfigMap default/web  #7\n":            {ID: 7, Controller: "configmap", Object: web},
		"00:00:00.000  ConfigMap default/web  #7 by counter\n": {ID: 7, Controller: "counter", Object: web},
		"00:00:00.000  counter web  #7\n":                      {ID: 7, Controller: "counter", Object: why.Object{Name: "web"}},
	} {
		var out strings.Builder
		(&whyShow{out: &out, location: time.UTC}).record(record)
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("without %q:\n%s", want, &out)
		}
	}
}

func TestWhyShowsDelayedEvents(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	web := &why.Object{Kind: "Pod", Name: "web"}
	for want, waited := range map[string]time.Duration{"• created Pod web (seen 10s earlier)\n": time.Millisecond, "• created Pod web\n": 10 * time.Second} {
		var out strings.Builder
		(&whyShow{out: &out, location: time.UTC}).record(&why.Record{
			Start: start, Waited: waited, Folded: 1, Causes: []why.Cause{{Type: why.Created, Object: web, Seen: start.Add(-10 * time.Second)}},
		})
		if !strings.Contains(out.String(), want) {
			t.Errorf("without %q:\n%s", want, &out)
		}
	}
}

func TestWhyShowsNothingThatATerminalActsOn(t *testing.T) {
	const evil = "a\x1b[31m\u009b2J\r\nb\u202e"
	object := why.Object{Kind: evil, Namespace: evil, Name: evil}
	record := &why.Record{
		Controller: evil, Object: object, Folded: 1, Written: 1, Outcome: why.Failed, Error: evil,
		Causes: []why.Cause{
			{Type: why.Updated, Object: &object, Changes: []why.Change{{Path: evil, Old: evil, New: evil}}, Changed: 1, By: []why.Writer{{Manager: evil, Subresource: evil}}, Repeated: true},
			{Type: why.CauseType(evil)},
		},
		Writes:   []why.Write{{Verb: evil, Subresource: evil, Object: object, Error: evil}},
		Findings: []why.Finding{{Type: why.Loop, Message: evil}},
	}
	var out strings.Builder
	(&whyShow{out: &out, location: time.UTC}).record(record)
	if strings.ContainsAny(out.String(), "\x1b\u009b\r\u202e") {
		t.Errorf("it prints %q", out.String())
	}
	// Nor does anything look like another line.
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "b") {
			t.Errorf("there is a line %q", line)
		}
	}
	if want := `(already seen by the previous reconcile)`; !strings.Contains(out.String(), want) || !strings.Contains(out.String(), `a\u001b[31m`) {
		t.Errorf("it prints %s", out.String())
	}
}

func TestUnknownCauses(t *testing.T) {
	var out strings.Builder
	(&whyShow{out: &out, location: time.UTC}).record(&why.Record{Causes: []why.Cause{{Type: why.Unknown}}, Folded: 1})
	if want := "• unknown cause: no watch event came before it (a resync, a timer or another source can lead to it)\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
