// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"reflect"
	"strconv"
	"strings"
)

// span is where a change stands in the text of a comparison, which is a single one for all of them: an event has many short
// texts, and each of its own would cost more than what is in it.
type span struct{ path, old, now extent }

// extent is a part of the text.
type extent struct{ from, to int }

func (e extent) of(text []byte) []byte { return text[e.from:e.to] }

func (e extent) isEmpty() bool { return e.from == e.to }

// all are the changes that were found.
func (c *comparison) all() []Change {
	if len(c.found) == 0 {
		return nil
	}
	text, changes := string(c.text), make([]Change, len(c.found))
	for i, s := range c.found {
		changes[i] = Change{Path: text[s.path.from:s.path.to], Old: text[s.old.from:s.old.to], New: text[s.now.from:s.now.to]}
	}
	return changes
}

// write adds to the text.
func (c *comparison) write(text string) extent {
	from := len(c.text)
	c.text = append(c.text, text...)
	return extent{from, len(c.text)}
}

// add notes a field that differs; a value that is not valid is that of a field that is not there.
func (c *comparison) add(a, b reflect.Value) {
	c.changed++
	if c.probing || len(c.found) >= c.maxChanges {
		return
	}
	if index := len(c.found); c.gives(a, b) {
		c.given |= 1 << index // which is nothing beyond the last bit
	}
	var s span
	s.path.from = len(c.text)
	c.text = appendPath(c.text, c.path)
	s.path.to = len(c.text)
	if !c.secret || !c.isConfidential() {
		c.renderBoth(&s, a, b)
	} else {
		if isThere(a) {
			s.old = c.write(hidden)
		}
		if isThere(b) {
			s.now = c.write(hidden)
		}
	}
	c.found = append(c.found, s)
}

// renderBoth shows both values of a change.
func (c *comparison) renderBoth(s *span, a, b reflect.Value) {
	old, now := c.render(a), c.render(b)
	s.old, s.now = old.shown, now.shown
	switch {
	case old.cut || now.cut:
		c.large = append(c.large, largeChange{len(c.found), old.hash(c.text), now.hash(c.text), !old.unknown && !now.unknown})
		if string(s.old.of(c.text)) == string(s.now.of(c.text)) {
			x, y := renderDifference(a, b, c.maxValue)
			c.text = c.text[:s.old.from]
			s.old, s.now = c.write(x), c.write(y)
		}
	case s.old.isEmpty() && s.now.isEmpty():
		// An empty text has come or gone.
		if a.IsValid() {
			s.old = c.write(`""`)
		} else {
			s.now = c.write(`""`)
		}
	}
}

func appendPath(text []byte, path []step) []byte {
	for i := range path {
		switch s := &path[i]; s.kind {
		case stepField, stepKey:
			if s.kind == stepKey && strings.ContainsAny(s.name, "./[]\"") {
				text = append(text, '[')
				text = append(text, shorten(s.name, 253)...)
				text = append(text, ']')
				continue
			}
			if i > 0 {
				text = append(text, '.')
			}
			text = append(text, shorten(s.name, 253)...)
		case stepElement:
			text = append(text, '[')
			text = append(text, s.key...)
			text = append(text, '=')
			text = append(text, shorten(s.value, 253)...)
			text = append(text, ']')
		case stepIndex:
			text = append(text, '[')
			text = strconv.AppendInt(text, int64(s.index), 10)
			text = append(text, ']')
		}
	}
	return text
}
