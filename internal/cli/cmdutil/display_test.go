// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/golden"
)

// noon is when everything happens in these tests.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// visible makes control sequences readable in a golden file.
var visible = strings.NewReplacer(eraseLine, "<erase>", Green, "<green>", Red, "<red>", NoColour, "<plain>")

func TestDisplayOfAStart(t *testing.T) {
	for name, d := range map[string]*Display{
		"terminal":       {width: 80, colour: true},
		"no-colour":      {width: 80},
		"narrow":         {width: 20},
		"not-a-terminal": {},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				screen bytes.Buffer
				clock  = noon
			)
			d.out, d.now, d.since = &screen, func() time.Time { return clock }, noon
			progress := startProgress{display: d}
			// What the ticker would do, at the times it would.
			tick := func(after time.Duration) {
				clock = noon.Add(after)
				if d.Live() {
					d.draw()
				}
			}

			d.Title("Starting cluster %q", "dock")
			d.Run(startSteps[0].doing)
			tick(100 * time.Millisecond)
			progress.report(cluster.Progress{Step: "state", Message: "state is in /state/dock", Elapsed: 120 * time.Millisecond})
			tick(200 * time.Millisecond)
			progress.report(cluster.Progress{Step: "etcd", Message: "etcd is up", Elapsed: 252 * time.Millisecond})
			// Out of order: the API server is still to come.
			progress.report(cluster.Progress{Step: "controllers", Message: "controllers are up", Elapsed: 300 * time.Millisecond})
			tick(400 * time.Millisecond)
			tick(500 * time.Millisecond)
			progress.report(cluster.Progress{Step: "apiserver", Message: "the API server is ready", Elapsed: 600 * time.Millisecond})
			progress.report(cluster.Progress{Step: "nodes", Message: "1 node is ready", Elapsed: 640 * time.Millisecond})
			tick(700 * time.Millisecond)
			d.failed("not ready", 12*time.Second)
			tick(13 * time.Second) // nothing runs any more, so nothing is drawn
			golden.Compare(t, "display/"+name, visible.Replace(screen.String()))
		})
	}
}

// Where there is no terminal, a step that takes long is told of now and then.
func TestStillRunning(t *testing.T) {
	var screen bytes.Buffer
	d := &Display{out: &screen, now: func() time.Time { return noon.Add(90 * time.Second) }, since: noon}
	d.still()
	d.Run("compiling for linux/amd64")
	d.still()
	d.Done("compiled for linux/amd64", 2*time.Minute)
	d.still()
	if got, want := screen.String(), "  still compiling for linux/amd64 (1m30s)\n  compiled for linux/amd64 (2m)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnimationLeavesNoRunningLine(t *testing.T) {
	var screen bytes.Buffer
	drawn := make(chan struct{}, 1)
	d := &Display{out: &screen, width: 80, since: noon, now: func() time.Time {
		select {
		case drawn <- struct{}{}:
		default:
		}
		return noon
	}}
	d.Run("working")
	stop := d.Animate()
	<-drawn // the ticker has asked what time it is and is about to draw
	stop()
	if got := screen.String(); !strings.Contains(got, "working") || !strings.HasSuffix(got, eraseLine) {
		t.Errorf("got %q, want the running line drawn and then erased", got)
	}
}

func TestDisplayOfABuild(t *testing.T) {
	for name, width := range map[string]int{"build-terminal": 80, "build-not-a-terminal": 0} {
		t.Run(name, func(t *testing.T) {
			var screen bytes.Buffer
			d := &Display{out: &screen, width: width, now: func() time.Time { return noon }}
			build := buildProgress{display: d}
			for second := range 31 {
				p := cluster.BuildProgress{Elapsed: time.Duration(second) * time.Second, Message: "downloading k8s.io/api"}
				if second >= 5 {
					p.Message, p.Done, p.Total, p.Expected = "compiling", 10*second, 2893, 330*time.Second
				}
				build.report(p)
				if d.Live() && second%10 == 0 {
					d.draw()
				}
			}
			golden.Compare(t, "display/"+name, visible.Replace(screen.String()))
		})
	}
}

func TestShortDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                               "0s",
		52400 * time.Microsecond:        "52ms",
		640 * time.Millisecond:          "0.64s",
		12300 * time.Millisecond:        "12s",
		2 * time.Minute:                 "2m",
		5*time.Minute + 32*time.Second:  "5m32s",
		10*time.Minute + 10*time.Second: "10m10s",
		3 * time.Hour:                   "3h",
		time.Hour + 20*time.Second:      "1h0m20s",
	} {
		if got := Short(d); got != want {
			t.Errorf("short(%v) = %s, want %s", d, got, want)
		}
	}
}
