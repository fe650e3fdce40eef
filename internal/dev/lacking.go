// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"fmt"
	"regexp"
	"sync"
)

// forbidden is how the API server refuses a request for want of a right. In a log, its quotes may be escaped.
var forbidden = regexp.MustCompile(`cannot (\w+) resource \\*"([\w./-]+)\\*" in API group \\*"([\w.-]*)\\*"`)

// lackedRights tells which rights the log of an operator says it lacks. The line in the log is easily overlooked: a stack comes
// with it, and a controller that may not watch what it wants to watch waits in silence for its caches.
type lackedRights struct {
	say func(string)

	mu    sync.Mutex
	known map[string]bool
	held  []string // what is told once the round is over, below its status line
	over  bool
}

func newLackedRights(say func(string)) *lackedRights {
	return &lackedRights{say: say, known: map[string]bool{}}
}

// read takes notice of a line.
func (r *lackedRights) read(line string) {
	match := forbidden.FindStringSubmatch(line)
	if match == nil {
		return
	}
	text := lacks(match[1], match[2], match[3])
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.known[text]:
		return
	case r.over:
		r.say(text)
	default:
		r.held = append(r.held, text)
	}
	r.known[text] = true
}

// roundIsOver tells what is known by now, and from now on whatever comes.
func (r *lackedRights) roundIsOver() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.held {
		r.say(text)
	}
	r.held, r.over = nil, true
}

// lacks says which right is missing and how it is given. Caches need three verbs, and ask for one of them at a time.
func lacks(verb, resource, group string) string {
	verbs := verb
	if verb == "get" || verb == "list" || verb == "watch" {
		verbs = "get;list;watch"
	}
	return fmt.Sprintf("the operator may not %s %s; its role needs: // +kubebuilder:rbac:groups=%s,resources=%s,verbs=%s",
		verb, resource, cmp.Or(group, `""`), resource, verbs)
}
