// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/tree"
)

func TestView(t *testing.T) {
	for _, size := range [][2]int{{120, 50}, {100, 30}, {80, 24}, {60, 16}, {40, 10}, {24, 4}} {
		name := fmt.Sprintf("%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			lines := testView().Lines(scene(), noon, size[0], size[1])
			golden.Compare(t, "view/"+name, strings.Join(lines, "\n")+"\n")
		})
	}
}

func TestViewInColour(t *testing.T) {
	view := testView()
	view.Colour = true
	coloured := strings.Join(view.Lines(scene(), noon, 100, 30), "\n") + "\n"
	golden.Compare(t, "view/colour", strings.ReplaceAll(coloured, "\x1b", "^"))
}

func TestViewOfNothing(t *testing.T) {
	golden.Compare(t, "view/nothing", strings.Join(testView().Lines(tree.Snapshot{}, noon, 80, 24), "\n")+"\n")
}

func TestViewFitsIntoEveryWindow(t *testing.T) {
	s := scene()
	for width := 0; width < 140; width += 7 {
		for height := 0; height < 70; height += 3 {
			for _, unfolded := range []bool{false, true} {
				view := testView()
				view.unfolded = unfolded
				lines := view.Lines(s, noon, width, height)
				if len(lines) > height {
					t.Fatalf("%d lines in a window of %dx%d", len(lines), width, height)
				}
				for _, l := range lines {
					if columns(l) > width {
						t.Fatalf("a line of %d columns in a window of %dx%d: %q", columns(l), width, height, l)
					}
				}
			}
		}
	}
}

// Every window that shows anything must show problems, because folding begins with healthy objects.
func TestViewShowsTroubleBeforeAnythingElse(t *testing.T) {
	s := scene()
	for height := 4; height < 70; height++ {
		text := strings.Join(testView().Lines(s, noon, 100, height), "\n")
		if !strings.Contains(text, "✗ AppService shop") {
			t.Errorf("a window of %d lines does not show the problem:\n%s", height, text)
		}
	}
}

func TestViewDoesNotLetMessagesControlTheTerminal(t *testing.T) {
	m := tree.NewModel()
	m.Set(of(tree.Object{
		Kind: "AppService", Name: "evil", Fleet: true, State: tree.Bad, Status: "Stalled", Reason: "Bad\x1b[2J",
		Message: "first\nsecond\x1b]0;title\x07\u202e", Detail: "\u009b1m",
	}))
	for _, l := range testView().Lines(m.Snapshot(), noon, 80, 24) {
		if strings.ContainsAny(l, "\x1b\n\x07\u009b\u202e") {
			t.Errorf("control characters in %q", l)
		}
	}
}
