// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	for _, test := range []struct {
		line line
		room int
		want string
	}{
		{line{{normal, "abc"}, {bold, "def"}}, 6, "abcdef"},
		{line{{normal, "abc"}, {bold, "def"}}, 5, "abcd…"},
		{line{{normal, "abc"}, {bold, "def"}}, 3, "ab…"},
		{line{{normal, "abc"}}, 1, "…"},
		// A wide character is left out if only half of it fits.
		{line{{normal, "世界界"}}, 6, "世界界"},
		{line{{normal, "世界界"}}, 5, "世界…"},
		{line{{normal, "世界界"}}, 4, "世…"},
	} {
		if got := test.line.cut(test.room).render(false); got != test.want {
			t.Errorf("%v in %d columns: got %q, want %q", test.line, test.room, got, test.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text       string
		room, most int
		want       []string
	}{
		{"", 10, 3, nil},
		{"one two three", 20, 3, []string{"one two three"}},
		{"one two three", 7, 3, []string{"one two", "three"}},
		{"one two three four", 7, 2, []string{"one two", "three four"}},
		{"a-word-that-is-too-long for it", 7, 3, []string{"a-word-that-is-too-long", "for it"}},
	} {
		if got := wrap(test.text, test.room, test.most); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestScreenIsDrawnOnlyWhenSomethingHasChanged(t *testing.T) {
	var out bytes.Buffer
	s := OpenScreen(&out)
	drawn := func(lines []string, width, height int) bool {
		before := out.Len()
		s.Draw(lines, width, height)
		return out.Len() > before
	}
	switch {
	case !drawn([]string{"a", "b"}, 80, 24):
		t.Error("the first lines were not drawn")
	case drawn([]string{"a", "b"}, 80, 24):
		t.Error("the same lines were drawn again")
	case !drawn([]string{"a", "c"}, 80, 24):
		t.Error("new lines were not drawn")
	case !drawn([]string{"a", "c"}, 60, 24):
		t.Error("a window of another size was not drawn")
	}
	s.Close()
	if text := out.String(); strings.Count(text, "\x1b[2J") != 1 {
		t.Errorf("the screen was cleared more than once, so it flickers: %q", text)
	}
	if text := out.String(); !strings.HasPrefix(text, "\x1b[?1049h") || !strings.HasSuffix(text, "\x1b[?1049l") {
		t.Errorf("the terminal was not restored: %q", text)
	}
}
