// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"reflect"
	"strings"
)

// span is the place of a change in the text of a comparison. All changes share one text: an event has many
// short texts, and allocating each would cost more than its content.
type span struct{ path, old, now extent }

// extent is a part of the text.
type extent struct{ from, to int }

func (e extent) of(text []byte) []byte { return text[e.from:e.to] }

func (e extent) isEmpty() bool { return e.from == e.to }

// all are the changes that were found.
func (c *Comparison) all() []Change {
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
func (c *Comparison) write(text string) extent {
	from := len(c.text)
	c.text = append(c.text, text...)
	return extent{from, len(c.text)}
}

// add records a field that differs. An invalid value means that the field does not exist.
func (c *Comparison) add(a, b reflect.Value) {
	c.Changed++
	if c.probing || len(c.found) >= c.MaxChanges {
		return
	}
	if index := len(c.found); c.gives(a, b) {
		c.Given |= 1 << index // which is nothing beyond the last bit
	}
	var s span
	s.path.from = len(c.text)
	c.text = AppendPath(c.text, c.path)
	s.path.to = len(c.text)
	if !c.secret || !c.isConfidential() {
		c.renderBoth(&s, a, b)
	} else {
		if isThere(a) {
			s.old = c.write(Hidden)
		}
		if isThere(b) {
			s.now = c.write(Hidden)
		}
	}
	c.found = append(c.found, s)
}

// renderBoth shows both values of a change.
func (c *Comparison) renderBoth(s *span, a, b reflect.Value) {
	old, now := c.render(a), c.render(b)
	s.old, s.now = old.shown, now.shown
	switch {
	case old.cut || now.cut:
		c.Large = append(c.Large, LargeChange{len(c.found), old.hash(c.text), now.hash(c.text), !old.unknown && !now.unknown})
		if string(s.old.of(c.text)) == string(s.now.of(c.text)) {
			x, y := renderDifference(a, b, c.MaxValue)
			c.text = c.text[:s.old.from]
			s.old, s.now = c.write(x), c.write(y)
		}
	case s.old.isEmpty() && s.now.isEmpty():
		// Something empty has come or gone.
		if a.IsValid() {
			s.old = c.write(emptyText(a))
		} else {
			s.now = c.write(emptyText(b))
		}
	}
}

// IsWithin reports whether a path is the other one or below it.
func IsWithin(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Change is one field that differs. Values are shortened, and the data and annotations of Secrets never shown.
type Change struct {
	// Path is like spec.template.spec.containers[name=app].image.
	Path string `json:"path"`
	// Old and New are JSON, cut where it is too long, on both sides if need be; empty if the field was or is not there.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}
