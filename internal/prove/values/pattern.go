// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// matching returns strings that match a pattern: a short one, and a longer one that repeats what may be repeated. The
// caller checks them, because lookups at word boundaries and the like are ignored.
func matching(pattern string) []string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	parsed = parsed.Simplify()
	var found []string
	for _, extra := range []int{0, 2} {
		var text strings.Builder
		generate(&text, parsed, extra)
		found = append(found, text.String())
	}
	return found
}

// generate writes a string that matches a pattern. Extra is how often it repeats what may be repeated or left out.
func generate(to *strings.Builder, pattern *syntax.Regexp, extra int) {
	repeat := func(least, most int) {
		times := least + extra
		if most >= 0 {
			times = min(times, most)
		}
		for range times {
			generate(to, pattern.Sub[0], extra)
		}
	}
	switch pattern.Op {
	case syntax.OpLiteral:
		to.WriteString(string(pattern.Rune))
	case syntax.OpCharClass:
		to.WriteRune(pick(pattern.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		to.WriteRune('a')
	case syntax.OpConcat, syntax.OpCapture:
		for _, part := range pattern.Sub {
			generate(to, part, extra)
		}
	case syntax.OpAlternate:
		generate(to, pattern.Sub[extra%len(pattern.Sub)], extra)
	case syntax.OpStar:
		repeat(0, -1)
	case syntax.OpPlus:
		repeat(1, -1)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		repeat(pattern.Min, pattern.Max)
	}
}

// pick returns a character of a class, one that people can read if there is any.
func pick(class []rune) rune {
	for _, wanted := range []rune{'a', 'A', '1', '0', '-', '/', '.'} {
		for at := 0; at+1 < len(class); at += 2 {
			if class[at] <= wanted && wanted <= class[at+1] {
				return wanted
			}
		}
	}
	for at := 0; at+1 < len(class); at += 2 {
		for char := class[at]; char <= class[at+1] && char < class[at]+128; char++ {
			if unicode.IsPrint(char) {
				return char
			}
		}
	}
	if len(class) == 0 {
		return 'a'
	}
	return class[0]
}
