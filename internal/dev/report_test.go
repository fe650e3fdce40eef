// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLine(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 1, 7, 0, time.UTC)
	seconds := func(s float64) Duration { return Duration(s * float64(time.Second)) }
	for want, round := range map[string]Round{
		"12:01:07 internal/controller/x.go changed · built 1.2 s · restarted · reconciling after 0.3 s": {
			Changed: []string{"internal/controller/x.go"},
			Steps:   []Step{{Name: "build", Text: "built", Took: seconds(1.21)}, {Name: "restart", Text: "restarted"}}, State: "reconciling", After: seconds(0.3),
		},
		"12:01:07 a.yaml and b.yaml changed · 2 samples applied": {
			Changed: []string{"a.yaml", "b.yaml"}, Steps: []Step{{Name: "samples", Text: "2 samples applied"}},
		},
		"12:01:07 role.yaml changed · nothing to do": {Changed: []string{"role.yaml"}},
		"12:01:07 a.go and 2 more files changed · the build failed": {
			Changed: []string{"a.go", "b.go", "c.go"}, Problem: &Problem{Text: "the build failed"},
		},
		"12:01:07 started · built 2 min 5 s · started · ready after 11 s · 1 sample applied": {
			Reason: "started", Steps: []Step{{Name: "build", Text: "built", Took: seconds(125)}, {Name: "restart", Text: "started"}, {Name: "samples", Text: "1 sample applied"}},
			State: "ready", After: seconds(11.4),
		},
		"12:01:07 started · started · restarted · reconciling after 0.3 s": {
			Reason: "started", Steps: []Step{{Name: "restart", Text: "started"}, {Name: "restart", Text: "restarted"}}, State: "reconciling", After: seconds(0.3),
		},
	} {
		round.Began = at
		if got := round.Line(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestDetails(t *testing.T) {
	if details := (Round{}).Details(); details != nil {
		t.Errorf("got %q", details)
	}
	lines := make([]string, 1, 5)
	lines[0] = "a.go:1:1: wrong"
	round := Round{Problem: &Problem{Lines: lines, Hint: "do something"}}
	if details := round.Details(); !slices.Equal(details, []string{"a.go:1:1: wrong", "do something"}) {
		t.Errorf("got %q", details)
	}
}

func TestRoundAsJSON(t *testing.T) {
	data, err := json.Marshal(Round{Changed: []string{"a.go"}, Steps: []Step{{Name: "build", Text: "built", Took: Duration(1234567890)}}, State: "reconciling", After: Duration(300 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"took":1.235`, `"after":0.3`, `"state":"reconciling"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s lacks %s", data, want)
		}
	}
	var back Round
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if back.After != Duration(300*time.Millisecond) {
		t.Errorf("read back as %s", back.After)
	}
}

func TestBuildErrors(t *testing.T) {
	output := "# example.com/a/internal\n./main.go:3:4: undefined: x\ninternal/c.go:9:2: declared and not used: y\n"
	if lines := (&buildError{output}).lines(); !slices.Equal(lines, []string{"main.go:3:4: undefined: x", "internal/c.go:9:2: declared and not used: y"}) {
		t.Errorf("got %q", lines)
	}
	many := (&buildError{strings.Repeat("a.go:1:1: wrong\n", 14)}).lines()
	if len(many) != mostLines+1 || many[mostLines] != "… and 4 more lines" {
		t.Errorf("got %q", many)
	}
}

func TestBuildArguments(t *testing.T) {
	for name, test := range map[string]struct {
		builder builder
		want    string
	}{
		"by default":    {builder{main: "./cmd"}, "build -v -o out -ldflags=-w -buildvcs=false ./cmd"},
		"for debuggers": {builder{main: ".", BuildOptions: BuildOptions{Debug: true}}, "build -v -o out -buildvcs=false ."},
		"tags and race": {builder{main: ".", BuildOptions: BuildOptions{Tags: "a,b", Race: true}}, "build -v -o out -tags a,b -race -ldflags=-w -buildvcs=false ."},
		"the user's own": {
			builder{main: ".", env: []string{"GOFLAGS=-mod=mod", "GOFLAGS=-mod=vendor -ldflags=-X=main.v=1 --buildvcs=true"}}, "build -v -o out .",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(test.builder.arguments("out"), " "); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
