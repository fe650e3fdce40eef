// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
)

// blankBodies overwrites the bodies of functions in Go source with spaces. dropFunctions would remove them anyway,
// and parsing them would take most of the loading time. Everything else keeps its line and column. If the source is
// not formatted with gofmt, the rest of the file is kept unchanged, which only takes longer.
func blankBodies(source []byte) {
	if bytes.Contains(source, []byte("//line ")) || bytes.Contains(source, []byte("/*line ")) {
		return // such a comment changes the line numbers of everything after it
	}
	s := bodyScanner{source: source}
	for s.toFunction() {
		begin, found := s.toBody()
		if !found {
			continue
		}
		end, found := s.pastBlock(begin)
		if !found {
			return
		}
		for i := begin + 1; i < end-1; i++ {
			if source[i] != '\n' && source[i] != '\r' {
				source[i] = ' '
			}
		}
		s.at = end
	}
}

// bodyScanner walks through Go source without taking it apart any further than needed to find functions.
type bodyScanner struct {
	source []byte
	at     int
}

// toFunction advances to the next function that begins a line, and past its first word.
func (s *bodyScanner) toFunction() bool {
	for s.at < len(s.source) {
		if (s.at == 0 || s.source[s.at-1] == '\n') && bytes.HasPrefix(s.source[s.at:], []byte("func ")) {
			s.at += len("func ")
			return true
		}
		s.at = s.next(s.at)
	}
	return false
}

// toBody finds the brace with which the body of a function begins, if it has one.
func (s *bodyScanner) toBody() (begin int, found bool) {
	depth := 0
	for s.at < len(s.source) {
		switch s.source[s.at] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case '\n':
			if depth == 0 {
				return 0, false
			}
		case '{':
			before := bytes.TrimRight(s.source[:s.at], " ")
			isType := bytes.HasSuffix(before, []byte("interface")) || bytes.HasSuffix(before, []byte("struct"))
			if !isType && depth == 0 {
				return s.at, true
			}
			end, closed := s.pastBlock(s.at)
			if !closed {
				return 0, false
			}
			s.at = end
			continue
		}
		s.at = s.next(s.at)
	}
	return 0, false
}

// pastBlock finds where a block ends that begins with the brace at this place.
func (s *bodyScanner) pastBlock(begin int) (end int, found bool) {
	depth := 0
	for at := begin; at < len(s.source); at = s.next(at) {
		switch s.source[at] {
		case '{':
			depth++
		case '}':
			depth--
			if depth == 0 {
				return at + 1, true
			}
		}
	}
	return 0, false
}

// meaningful are the characters at which something can begin or end.
var meaningful = [256]bool{'\n': true, '"': true, '\'': true, '`': true, '/': true, '(': true, ')': true, '[': true, ']': true, '{': true, '}': true}

// next is the next place at which something can begin or end, after the character, string or comment at this one.
func (s *bodyScanner) next(at int) int {
	at = s.past(at)
	for at < len(s.source) && !meaningful[s.source[at]] {
		if s.source[at-1] == '\n' {
			break // a function can begin here
		}
		at++
	}
	return at
}

// past is where the character, string or comment ends that begins at this place.
func (s *bodyScanner) past(at int) int {
	rest := s.source[at+1:]
	switch c := s.source[at]; c {
	case '`':
		if length := bytes.IndexByte(rest, '`'); length >= 0 {
			return at + 1 + length + 1
		}
		return len(s.source)
	case '"', '\'':
		for i := at + 1; i < len(s.source); i++ {
			switch s.source[i] {
			case '\\':
				i++
			case c:
				return i + 1
			case '\n':
				return i // it does not compile
			}
		}
		return len(s.source)
	case '/':
		if bytes.HasPrefix(rest, []byte("/")) {
			if length := bytes.IndexByte(rest, '\n'); length >= 0 {
				return at + 1 + length // the end of the line is none of the comment
			}
			return len(s.source)
		}
		if bytes.HasPrefix(rest, []byte("*")) {
			if length := bytes.Index(rest[1:], []byte("*/")); length >= 0 {
				return at + 2 + length + 2
			}
			return len(s.source)
		}
	}
	return at + 1
}
