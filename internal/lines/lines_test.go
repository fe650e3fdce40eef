// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestWriter(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", Longest)
	for name, test := range map[string]struct {
		writes, want []string
		flushed      []string
	}{
		"nothing":               {nil, nil, nil},
		"a line":                {[]string{"a\n"}, []string{"a"}, nil},
		"in parts":              {[]string{"a", "b", "\nc\n", "d"}, []string{"ab", "c"}, []string{"d"}},
		"several at once":       {[]string{"a\nb\n\nc"}, []string{"a", "b", ""}, []string{"c"}},
		"carriage returns":      {[]string{"a\r\nb\r"}, []string{"a"}, []string{"b"}},
		"a line that is longer": {[]string{long, "y\n"}, []string{long, "y"}, nil},
	} {
		var got []string
		w := NewWriter(func(line string) { got = append(got, line) })
		for _, text := range test.writes {
			if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%s: wrote %d: %v", name, n, err)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		w.Flush()
		w.Flush()
		if rest := got[len(test.want):]; !slices.Equal(rest, test.flushed) {
			t.Errorf("%s: flushed %q, want %q", name, rest, test.flushed)
		}
	}
}

func TestWriterOfNoFunction(t *testing.T) {
	t.Parallel()
	w := NewWriter(nil)
	fmt.Fprint(w, "a\nb")
	w.Flush()
}

func TestWriterIsUsedBySeveral(t *testing.T) {
	t.Parallel()
	count := 0
	w := NewWriter(func(string) { count++ })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				fmt.Fprintln(w, "line")
			}
		})
	}
	all.Wait()
	if count != 800 {
		t.Errorf("%d lines", count)
	}
}
