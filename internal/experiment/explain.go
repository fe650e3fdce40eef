// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opdock/opdock/why"
)

// Subject names the object of an event.
func (e *Event) Subject() string {
	if e.Object == nil {
		return "the reconciler itself"
	}
	return e.Object.Kind + " " + e.Object.Name
}

// Meaning explains an event in a few words. It uses only the changes in the event.
func (e *Event) Meaning() string {
	switch {
	case e.Type == why.Created:
		return "it was created"
	case e.Type == why.Deleted:
		return "it was deleted"
	case e.Type == why.Timer:
		return "the requeue delay of the previous reconcile has passed"
	case e.Type == why.Retried:
		return "the previous reconcile failed"
	case e.Type != why.Updated:
		return string(e.Type)
	case len(e.Changes) == 0:
		return "only managed fields changed"
	case e.changed("metadata.deletionTimestamp") != nil:
		if e.changed("metadata.deletionTimestamp").Old == "" {
			return "its deletion started"
		}
		return "it stopped and can be removed"
	case e.changed("spec.nodeName") != nil:
		return "it was scheduled"
	case slices.ContainsFunc(e.Changes, func(c why.Change) bool { return strings.HasPrefix(c.Path, "spec.") }):
		if slices.ContainsFunc(e.By, func(w why.Writer) bool { return w.Manager == fieldOwner }) {
			return "the change itself"
		}
		return "its spec was changed"
	case e.Object != nil && e.Object.Kind == "Pod":
		return e.podMeaning()
	}
	if parts := e.countMeanings(); len(parts) > 0 {
		return strings.Join(parts, "; ")
	}
	return e.Changes[0].Path + " was changed"
}

func (e *Event) podMeaning() string {
	ready := e.changed("status.conditions[type=Ready].status")
	switch phase := e.changed("status.phase"); {
	case ready != nil && ready.New == `"True"`:
		return "it is ready"
	case ready != nil:
		return "it is not ready"
	case phase != nil:
		return "its phase is " + unquote(phase.New)
	default:
		return "its status was changed"
	}
}

// countMeanings explains the changed numbers in the status of a Deployment, a ReplicaSet or an AppService.
func (e *Event) countMeanings() (parts []string) {
	describe := func(path, more, fewer string) bool {
		by := e.difference(path)
		switch {
		case by > 0:
			parts = append(parts, podCount(by)+" "+more)
		case by < 0:
			parts = append(parts, podCount(-by)+" "+fewer)
		}
		return by != 0
	}
	if e.changed("status.observedGeneration") != nil {
		parts = append(parts, "the new spec was observed")
	}
	counted := describe("status.replicas", "more", "fewer")
	if e.difference("status.readyReplicas") > 0 || !counted {
		counted = describe("status.readyReplicas", "ready", "no longer ready") || counted
	}
	if !counted {
		counted = describe("status.availableReplicas", "available", "no longer available")
	}
	if !counted {
		counted = describe("status.unavailableReplicas", "missing", "no longer missing")
	}
	if !counted {
		describe("status.terminatingReplicas", "stopping", "stopped")
	}
	return parts
}

func (e *Event) changed(path string) *why.Change {
	index := slices.IndexFunc(e.Changes, func(c why.Change) bool { return c.Path == path })
	if index < 0 {
		return nil
	}
	return &e.Changes[index]
}

// difference returns by how much a number has grown.
func (e *Event) difference(path string) int {
	c := e.changed(path)
	if c == nil {
		return 0
	}
	number := func(text string) int {
		value, _ := strconv.Atoi(text) // a missing field counts as 0
		return value
	}
	return number(c.New) - number(c.Old)
}

func podCount(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// Writers names the field managers that made the change, if they are known.
func (e *Event) Writers() string {
	var names []string
	for _, w := range e.By {
		if !slices.Contains(names, w.Manager) {
			names = append(names, w.Manager)
		}
	}
	return strings.Join(names, ", ")
}

// Fields lists the changed fields, without those that change with every condition.
func (e *Event) Fields() string {
	type group struct {
		text  string
		count int
	}
	var groups []group
	for _, c := range e.Changes {
		text := field(c)
		if text == "" {
			continue
		}
		index := slices.IndexFunc(groups, func(g group) bool { return g.text == text })
		if index < 0 {
			groups = append(groups, group{text: text})
			index = len(groups) - 1
		}
		groups[index].count++
	}
	var fields []string
	for _, g := range groups {
		if g.count > 1 {
			g.text += fmt.Sprintf(" (%d times)", g.count)
		}
		fields = append(fields, g.text)
	}
	return strings.Join(fields, ", ")
}

// field describes a change in a few words. It returns an empty string if the change adds no information.
func field(c why.Change) string {
	path := strings.TrimPrefix(c.Path, "metadata.")
	if status, found := strings.CutPrefix(path, "status."); found {
		path = status
	}
	if condition, found := strings.CutPrefix(path, "conditions[type="); found {
		name, rest, _ := strings.Cut(condition, "]")
		if rest != "" && rest != ".status" {
			return "" // the time, reason, message and generation change with the status
		}
		path = "condition " + name
	}
	if list, rest, found := strings.Cut(path, "[name="); found {
		_, rest, _ = strings.Cut(rest, "]")
		path = list + "[…]" + rest
	}
	return path + " " + value(c.Old) + " → " + value(c.New)
}

// value returns a short, readable form of a JSON value.
func value(text string) string {
	switch {
	case text == "":
		return "–"
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return "{…}"
	default:
		return unquote(text)
	}
}

func unquote(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// WritesOf lists the writes of a reconcile in a few words.
func (r *Reconcile) WritesOf() string {
	var writes []string
	for _, w := range r.Writes {
		text := w.Verb + " " + w.Object.Kind
		if w.Subresource != "" {
			text += " " + w.Subresource
		}
		if w.NoChange {
			text += " (changes nothing)"
		}
		writes = append(writes, text)
	}
	if len(writes) == 0 {
		return "nothing"
	}
	return strings.Join(writes, ", ")
}
