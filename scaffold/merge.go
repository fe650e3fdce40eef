// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// mergeEdited applies the change from old to next to an edited version of old. It is false if
// the same lines or lines next to them were edited, or if the result is not valid Go.
func mergeEdited(name string, old, next, edited []byte) (merged []byte, ok bool) {
	lines := splitLines(edited)
	before := splitLines(old)
	after := splitLines(next)
	// From the end, so the positions of earlier changes stay valid.
	for _, one := range slices.Backward(hunksBetween(before, after)) {
		at, size, found := one.find(before, lines)
		if !found {
			return nil, false
		}
		lines = slices.Concat(lines[:at], after[one.afterFrom:one.afterTo], lines[at+size:])
	}
	merged = []byte(strings.Join(lines, ""))
	if isGo(name) {
		if _, err := parser.ParseFile(token.NewFileSet(), name, merged, parser.SkipObjectResolution); err != nil {
			return nil, false
		}
	}
	return merged, true
}

func splitLines(content []byte) []string { return slices.Collect(strings.Lines(string(content))) }

// hunk is a range of lines that differ in another version of a file.
type hunk struct{ beforeFrom, beforeTo, afterFrom, afterTo int }

// find finds the lines of a hunk in an edited file, with as much context as a unique match
// needs.
func (h hunk) find(before, edited []string) (at, size int, found bool) {
	const around = 3
	for context := around; context > 0; context-- {
		from, to := max(h.beforeFrom-context, 0), min(h.beforeTo+context, len(before))
		places := placesOf(before[from:to], edited)
		if len(places) == 1 {
			return places[0] + h.beforeFrom - from, h.beforeTo - h.beforeFrom, true
		}
		if len(places) > 1 {
			break // fewer lines would be in even more places
		}
	}
	if h.beforeFrom == len(before) && len(edited) > 0 && strings.HasSuffix(edited[len(edited)-1], "\n") {
		return len(edited), 0, true // the end is the end, whatever is before it
	}
	return 0, 0, false
}

func placesOf(wanted, lines []string) (places []int) {
	for at := 0; at+len(wanted) <= len(lines); at++ {
		if slices.Equal(lines[at:at+len(wanted)], wanted) {
			places = append(places, at)
		}
	}
	return places
}

// hunksBetween compares two versions of a file by the longest sequence of lines that both have.
func hunksBetween(before, after []string) (hunks []hunk) {
	longest := make([][]int, len(before)+1) // of what follows a line of each
	for i := range longest {
		longest[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		if i < len(before) && j < len(after) && before[i] == after[j] {
			i, j = i+1, j+1
			continue
		}
		one := hunk{beforeFrom: i, afterFrom: j}
		for i < len(before) || j < len(after) {
			if i < len(before) && j < len(after) && before[i] == after[j] {
				break
			}
			if j == len(after) || i < len(before) && longest[i+1][j] >= longest[i][j+1] {
				i++
			} else {
				j++
			}
		}
		one.beforeTo, one.afterTo = i, j
		hunks = append(hunks, one)
	}
	return hunks
}

// sameCode reports whether two Go files differ only in comments.
func sameCode(a, b []byte) bool { return bytes.Equal(withoutComments(a), withoutComments(b)) }

func withoutComments(content []byte) []byte {
	var code []byte
	for line := range bytes.Lines(content) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) {
			code = append(code, line...)
		}
	}
	return code
}
