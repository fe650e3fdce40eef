// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/url"
	"path"
	"strconv"
	"strings"
)

// place is a line of a source file.
type place struct {
	file string
	line int
	col  int
	text string // what is there
}

// places returns where a finding comes from, as far as it can be read.
func (f *Finding) places() []place {
	var all []place
	for _, where := range f.Where {
		if p, ok := parsePlace(where); ok {
			all = append(all, p)
		}
	}
	return all
}

// parsePlace reads file:line or file:line:column. What follows after a space says what is there.
func parsePlace(where string) (place, bool) {
	where, text, _ := strings.Cut(strings.TrimSpace(where), " ")
	file, last, ok := cutNumber(where)
	if !ok {
		return place{}, false
	}
	if shorter, line, both := cutNumber(file); both {
		return place{file: shorter, line: line, col: last, text: text}, true
	}
	return place{file: file, line: last, text: text}, true
}

func cutNumber(text string) (before string, number int, ok bool) {
	at := strings.LastIndexByte(text, ':')
	if at <= 0 {
		return text, 0, false
	}
	number, err := strconv.Atoi(text[at+1:])
	return text[:at], number, err == nil && number > 0
}

// uri returns the address of the file, and whether it is relative to the project.
func (p place) uri() (text string, relative bool) {
	if path.IsAbs(p.file) {
		return (&url.URL{Scheme: "file", Path: path.Clean(p.file)}).String(), false
	}
	return (&url.URL{Path: path.Clean(p.file)}).String(), true
}
