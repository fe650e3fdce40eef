// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/tree"
)

// Part of an address is useless, so the address is shown completely or not at all.
func TestTheAddressIsNeverCut(t *testing.T) {
	const address = "http://127.0.0.1:43210"
	s := scene()
	for width := 4; width < 140; width++ {
		for _, height := range []int{3, 4, 5, 9, 10, 24, 60} {
			for _, unfolded := range []bool{false, true} {
				view := testView()
				view.Address, view.unfolded = address, unfolded
				lines := view.Lines(s, noon, width, height)
				if len(lines) > height {
					t.Fatalf("%d lines in a window of %dx%d", len(lines), width, height)
				}
				text := strings.Join(lines, "")
				whole := strings.Contains(text, address)
				if width >= len(address) && !whole || !whole && strings.Contains(text, "http://127") {
					t.Fatalf("the address is not complete in a window of %dx%d:\n%s", width, height, strings.Join(lines, "\n"))
				}
			}
		}
	}
}

func TestFitDetail(t *testing.T) {
	const detail = "size 2, available 2, http://web.default.svc"
	for _, test := range []struct {
		detail string
		room   int
		want   string
	}{
		{detail, 60, detail},
		{detail, 40, "available 2, http://web.default.svc"},
		{detail, 25, "http://web.default.svc"},
		{detail, 20, "size 2, available 2"},
		{"http://web.default.svc, size 2", 25, "http://web.default.svc"},
		{"http://web.default.svc", 10, ""},
		{"no address in here at all", 10, "no address in here at all"}, // is cut later
	} {
		if got := fitDetail(test.detail, test.room); got != test.want {
			t.Errorf("%q in %d columns: got %q, want %q", test.detail, test.room, got, test.want)
		}
	}
}

func TestFindingsStandAboveTheTree(t *testing.T) {
	view := testView()
	view.Findings = []string{"Frigate black reconciles in a loop: 612 reconciles in the last minute.", "AppService shop fails\x1b[2J: 5 times in a row."}
	lines := view.Lines(scene(), noon, 100, 30)
	if lines[1] != " ! "+view.Findings[0] || lines[2] != " ! AppService shop fails[2J: 5 times in a row." {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
	if small := strings.Join(view.Lines(tree.Snapshot{}, noon, 40, 8), "\n"); !strings.Contains(small, "2 findings not shown here") {
		t.Errorf("findings that do not fit are not counted:\n%s", small)
	}
}
