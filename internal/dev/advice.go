// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"fmt"
	"regexp"
	"sync"
)

var (
	// forbidden is how the API server refuses a request for want of a right. In a log, its quotes may be escaped.
	forbidden = regexp.MustCompile(`cannot (\w+) resource \\*"([\w./-]+)\\*" in API group \\*"([\w.-]*)\\*"`)
	// exists is how it refuses to create something a second time.
	exists = regexp.MustCompile(`([a-z][\w.-]*) \\*"([\w.-]+)\\*" already exists`)
)

// invisible is how often an object has to be created in vain until its creator is taken for one that cannot see it. Once
// or twice it may be a cache that is late.
const invisible = 3

// advice tells what to do about those lines of an operator's log that a newcomer meets first and that do not say it. They
// are easily overlooked: a stack comes with them, and a controller that may not watch something waits for it in silence.
type advice struct {
	say func(string)

	mu      sync.Mutex
	known   map[string]bool
	created map[string]int // in vain
	held    []string       // what is told once the round is over, below its status line
	over    bool
}

func newAdvice(say func(string)) *advice {
	return &advice{say: say, known: map[string]bool{}, created: map[string]int{}}
}

// read takes notice of a line.
func (a *advice) read(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := a.about(line)
	switch {
	case text == "" || a.known[text]:
		return
	case a.over:
		a.say(text)
	default:
		a.held = append(a.held, text)
	}
	a.known[text] = true
}

// roundIsOver tells what is known by now, and from now on whatever comes.
func (a *advice) roundIsOver() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range a.held {
		a.say(text)
	}
	a.held, a.over = nil, true
}

func (a *advice) about(line string) string {
	if match := forbidden.FindStringSubmatch(line); match != nil {
		return lacks(match[1], match[2], match[3])
	}
	if match := exists.FindStringSubmatch(line); match != nil {
		a.created[match[0]]++
		if a.created[match[0]] == invisible {
			return fmt.Sprintf("the operator keeps creating %s %q, which already exists; its cache may not contain the object: "+
				"check whether main restricts the cache (ByObject) to a label that the object does not have", match[1], match[2])
		}
	}
	return ""
}

// lacks says which right is missing and how it is given. Caches need three verbs, and ask for one of them at a time.
func lacks(verb, resource, group string) string {
	verbs := verb
	if verb == "get" || verb == "list" || verb == "watch" {
		verbs = "get;list;watch"
	}
	return fmt.Sprintf("the operator is not allowed to %s %s; add to its role: // +kubebuilder:rbac:groups=%s,resources=%s,verbs=%s",
		verb, resource, cmp.Or(group, `""`), resource, verbs)
}
