// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	defineLine  = regexp.MustCompile(`^\s*\{\{-?\s*define\s+"([^"]+)"\s*-?\}\}\s*$`)
	includeLine = regexp.MustCompile(`^\s*\{\{-?\s*(?:include|template)\s+"([^"]+)"[^{}]*\}\}\s*$`)
	indentation = regexp.MustCompile(`\|\s*n?indent\s+(\d+)`)
	// beginLine and endLine are what has an end, and that end.
	beginLine = regexp.MustCompile(`^\s*\{\{-?\s*(?:if|with|range|define|block)\b`)
	endLine   = regexp.MustCompile(`^\s*\{\{-?\s*end\s*-?\}\}\s*$`)
	comment   = regexp.MustCompile(`\{\{-?\s*/\*.*?\*/\s*-?\}\}`)
)

// definitions are the templates that a file defines, as lines by their names.
func definitions(content string) map[string][]string {
	found := map[string][]string{}
	name, depth := "", 0
	for line := range strings.Lines(content) {
		text := strings.TrimRight(line, "\r\n")
		if name == "" {
			if match := defineLine.FindStringSubmatch(text); match != nil {
				name, depth = match[1], 1
			}
			continue
		}
		switch {
		case beginLine.MatchString(text):
			depth++
		case endLine.MatchString(text):
			depth--
		}
		if depth == 0 {
			name = ""
			continue
		}
		found[name] = append(found[name], text)
	}
	return found
}

const (
	// maxIncluded is how deep templates include others.
	maxIncluded    = 5
	maxIndentation = 40
)

// included replaces lines that include a template by that template.
func included(text []string, defined map[string][]string, depth int) (expanded []string) {
	for _, line := range text {
		line = comment.ReplaceAllString(line, "")
		match := includeLine.FindStringSubmatch(line)
		if match == nil || defined[match[1]] == nil || depth == maxIncluded {
			expanded = append(expanded, line)
			continue
		}
		margin := ""
		if by := indentation.FindStringSubmatch(line); by != nil {
			spaces, _ := strconv.Atoi(by[1]) // digits
			margin = strings.Repeat(" ", min(spaces, maxIndentation))
		}
		for _, one := range included(defined[match[1]], defined, depth+1) {
			expanded = append(expanded, margin+one)
		}
	}
	return expanded
}
