// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// matching returns a short text that matches a regular expression and fits.
func matching(pattern string, fits func(string) bool) (string, bool) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return "", false
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	// Each attempt repeats what may be repeated once more: the shortest match may be too short.
	for more := range 65 {
		var text strings.Builder
		if !write(&text, tree.Simplify(), more) {
			return "", false
		}
		if compiled.MatchString(text.String()) && fits(text.String()) && (text.Len() > 0 || more > 1) {
			return text.String(), true
		}
	}
	return "", compiled.MatchString("") && fits("")
}

// longest bounds what nested repetitions can make.
const longest = 4096

// write appends a match of an expression, in which what may be repeated is repeated more than the least times.
func write(text *strings.Builder, tree *syntax.Regexp, more int) bool {
	if text.Len() > longest {
		return false
	}
	switch tree.Op {
	case syntax.OpNoMatch:
		return false
	case syntax.OpLiteral:
		for _, r := range tree.Rune {
			text.WriteRune(r)
		}
	case syntax.OpCharClass:
		r, ok := pick(tree.Rune)
		if !ok {
			return false
		}
		text.WriteRune(r)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		text.WriteRune('a')
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range tree.Sub {
			if !write(text, sub, more) {
				return false
			}
		}
	case syntax.OpAlternate:
		return write(text, tree.Sub[0], more)
	case syntax.OpStar:
		return repeat(text, tree.Sub[0], more, more)
	case syntax.OpPlus:
		return repeat(text, tree.Sub[0], 1+more, more)
	case syntax.OpQuest:
		return repeat(text, tree.Sub[0], min(more, 1), more)
	case syntax.OpRepeat:
		times := tree.Min + more
		if tree.Max >= 0 {
			times = min(times, tree.Max)
		}
		return repeat(text, tree.Sub[0], times, more)
	}
	return true // the others match no characters
}

func repeat(text *strings.Builder, tree *syntax.Regexp, times, more int) bool {
	for range times {
		if !write(text, tree, more) {
			return false
		}
	}
	return true
}

// pick chooses the most readable character of a class, which is a list of ranges.
func pick(class []rune) (rune, bool) {
	for _, wanted := range []rune{'a', 'e', 'A', '0', '1'} {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= wanted && wanted <= class[i+1] {
				return wanted, true
			}
		}
	}
	for i := 0; i+1 < len(class); i += 2 {
		for r := max(class[i], ' '); r <= class[i+1] && r <= 0xffff; r++ {
			return r, true
		}
	}
	if len(class) > 0 {
		return class[0], true
	}
	return 0, false
}
