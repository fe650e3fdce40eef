// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/golden"
)

func TestActions(t *testing.T) {
	for input, want := range map[string][]Action{
		"":                     nil,
		"q":                    {Quit},
		"\x03":                 {Quit},
		"\x1b[A\x1b[B":         {Up, Down},
		"\x1bOA\x1b[5~\x1b[6~": {Up, PageUp, PageDown},
		"kj gG":                {Up, Down, Unfold, Top, Bottom},
		"x\x1bé\x00":           nil,
		// An unknown key sequence before a known key: its letters must not count.
		"\x1b[1;5q\x1b[Aq": {Up, Quit},
		"\x1b[200":         nil,
	} {
		if got := Actions(input); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", input, got, want)
		}
	}
}

func TestScrolling(t *testing.T) {
	const width, height = 80, 20
	s, view := scene(), testView()
	screen := func() string { return strings.Join(view.Lines(s, noon, width, height), "\n") + "\n" }
	folded := screen()
	view.Do(Down)
	top := screen()
	golden.Compare(t, "view/unfolded", top)
	for name, test := range map[string]struct {
		actions []Action
		same    bool // as at the top
	}{
		"down and up":              {[]Action{Top, Down, Down, Up, Up}, true},
		"up at the top":            {[]Action{Top, Up}, true},
		"down":                     {[]Action{Top, Down}, false},
		"a page down and up":       {[]Action{Top, PageDown, PageUp}, true},
		"below the end and back":   {[]Action{Bottom, PageDown, Top}, true},
		"one line above the end":   {[]Action{Bottom, Up}, false},
		"many pages below the end": {[]Action{PageDown, PageDown, PageDown, PageDown, PageDown, PageDown}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, action := range test.actions {
				view.Do(action)
				screen() // draw between two keys
			}
			if got := screen(); (got == top) != test.same {
				t.Errorf("got\n%s", got)
			}
		})
	}
	view.Do(Bottom)
	golden.Compare(t, "view/bottom", screen())
	view.Do(Unfold)
	if got := screen(); got != folded {
		t.Errorf("the tree is not folded again:\n%s", got)
	}
}
