// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// What is said about a change that led elsewhere than a fresh start.

// changing is a change of custom resources, in words.
type changing struct {
	what   string // such as "a change of spec.port"
	change string // with its values
	done   string // with what it is compared with
}

var (
	// pastNames are labels, annotations, variables and fields of a status that say how something came to be.
	pastNames = regexp.MustCompile(`(?i)(?:^|[^a-z])(generation|revision(-?hash)?|(restart(s|ed)?|updated|changed|rollout)([-_]?(at|on|time|count|id))?|last[-_]?(applied|updated?|changed?)[^.\[\]]*)\]?(\.value)?$`)
	// pastLists are lists in a status of what was before.
	pastLists = regexp.MustCompile(`(?i)(^|\.)[a-z]*history([.\[]|$)`)
	// humps are where words meet in such a name.
	humps = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	// hashed is a last part of a name that depends on what the object contains.
	hashed = regexp.MustCompile(`-(?:[0-9a-f]*[0-9][0-9a-f]*|[bcdfghjklmnpqrstvwxz2456789]{5,})$`)
)

// versioned are kinds of which operators keep older objects, because pods may still use them.
var versioned = map[string]bool{"ConfigMap": true, "Secret": true, "ControllerRevision": true}

// shortestHash is how long the last part of a name must be to be one.
const shortestHash = 5

// isPast reports whether a difference only shows that there was something before: a time or a count, or an object whose
// name depends on its content and that has a successor.
func isPast(d compare.Difference, fresh compare.Shape) bool {
	if d.Path == "" {
		kind, _, _ := strings.Cut(d.Object, " ")
		stem := hashStem(d.Object)
		return versioned[kind] && d.Want == "absent" && stem != "" && hasStem(fresh, stem)
	}
	if d.Want == "(time)" || d.Got == "(time)" {
		return true
	}
	if strings.HasPrefix(d.Object, "StatefulSet ") && (d.Path == "status.currentRevision" || d.Path == "status.updateRevision") {
		return true // its template is compared, but for such a time
	}
	name := humps.ReplaceAllString(d.Path, "$1-$2")
	if strings.HasPrefix(d.Path, "status.") {
		return pastLists.MatchString(d.Path) || pastNames.MatchString(name) && !isPresent(d.Want) && !isPresent(d.Got)
	}
	inMetadata := strings.Contains(d.Path, "annotations.") || strings.Contains(d.Path, "labels.") || strings.Contains(d.Path, ".env[")
	return inMetadata && pastNames.MatchString(name)
}

// isPresent reports whether a value of a status is about the present: the generation that it is about, or a yes or no.
func isPresent(value string) bool {
	return value == "current" || value == "behind" || strings.HasSuffix(value, " behind") || value == "true" || value == "false"
}

// hashStem is a name without the hash at its end; empty if it has none.
func hashStem(name string) string {
	hash := hashed.FindString(name)
	if len(hash) <= shortestHash {
		return ""
	}
	return strings.TrimSuffix(name, hash)
}

func hasStem(shape compare.Shape, stem string) bool {
	for name := range shape.Objects {
		if hashStem(name) == stem {
			return true
		}
	}
	return false
}

// unfollowed returns an observation for each object that is another than after a fresh start. Before is how everything was
// before the change, and failing are the errors at which the operator is stuck.
func (about *changing) unfollowed(step int, found []compare.Difference, before compare.Shape, failing []string) (wrong []*Observation) {
	var order []string
	byObject := map[string][]compare.Difference{}
	for _, d := range found {
		if byObject[d.Object] == nil {
			order = append(order, d.Object)
		}
		byObject[d.Object] = append(byObject[d.Object], d)
	}
	for _, object := range order {
		o := about.unfollowedBy(object, byObject[object], before.Objects[object])
		o.Step = step
		if len(failing) > 0 {
			o.Got += ". The operator keeps failing, and does not report it: " + shortened(firstLine(failing[0]))
		}
		wrong = append(wrong, o)
	}
	return wrong
}

// unfollowedBy describes one object.
func (about *changing) unfollowedBy(object string, found []compare.Difference, before compare.Fields) *Observation {
	kind, _, _ := strings.Cut(object, " ")
	o := &Observation{Verdict: "update", Severity: high, Object: object, Done: about.done, about: about.what}
	const fresh = " after a fresh start with the same spec"
	switch first := found[0]; {
	case first.Path == "" && first.Got == "absent":
		o.Title, o.Want, o.Got = "After "+about.what+", "+lowerKind(kind)+" that a fresh start creates is missing", "present, as"+fresh, "absent"
		return o
	case first.Path == "" && first.Want == "absent":
		o.Title, o.Want, o.Got = "After "+about.what+", "+lowerKind(kind)+" that a fresh start does not create is left", "absent, as"+fresh, "present"
		return o
	case first.Path == "":
		o.Title = "After " + about.what + ", there are not as many objects of kind " + kind + " as after a fresh start"
		o.Want, o.Got = first.Want+", as"+fresh, first.Got
		return o
	}
	found = innermost(found)
	var want, got []string
	stays, remains := true, true
	for i, d := range found {
		old, was := before[d.Path]
		stayed := was && old == d.Got || !was && d.Got == "absent"
		stays, remains = stays && stayed, remains && stayed && d.Want == "absent"
		if i < mostFields {
			o.Fields = append(o.Fields, d.Path)
		}
		if i < mostShown {
			verb := " is "
			if stayed && was {
				verb = " stays "
			}
			want, got = append(want, d.Path+" is "+d.Want), append(got, d.Path+verb+d.Got)
		}
	}
	o.Want, o.Got = strings.Join(want, "; ")+", as"+fresh, strings.Join(got, "; ")
	if more := len(found) - mostShown; more > 0 {
		o.Got += fmt.Sprintf("; and %d more", more)
	}
	switch {
	case remains:
		o.Title = upper(about.what) + " " + about.verb("leaves", "leave") + " something behind in " + lowerKind(kind)
	case stays:
		o.Title = upper(about.what) + " " + about.verb("does", "do") + " not reach " + lowerKind(kind)
	default:
		o.Title = upper(about.what) + " " + about.verb("reaches", "reach") + " " + lowerKind(kind) + " only in part"
	}
	return o
}

// mostShown is how many fields are shown with their values.
const mostShown = 3

// innermost leaves out parents of fields that are there as well: an empty parent says no more than what was in it.
func innermost(found []compare.Difference) []compare.Difference {
	return slices.DeleteFunc(slices.Clone(found), func(d compare.Difference) bool {
		return slices.ContainsFunc(found, func(other compare.Difference) bool {
			return other.Object == d.Object && d.Path != "" && (strings.HasPrefix(other.Path, d.Path+".") || strings.HasPrefix(other.Path, d.Path+"["))
		})
	})
}

func (about *changing) verb(one, many string) string {
	if strings.HasPrefix(about.what, "the changes") {
		return many
	}
	return one
}

// otherStatus returns custom resources that say something else than after a fresh start, although all objects are equal.
func (about *changing) otherStatus(step int, found []compare.Difference) (wrong []*Observation) {
	for _, d := range found {
		kind, _, _ := strings.Cut(d.Object, " ")
		wrong = append(wrong, &Observation{
			Step: step, Verdict: "status", Severity: medium, Object: d.Object, Fields: []string{d.Path}, Done: about.done, about: about.what,
			Title: "After " + about.what + ", the status of " + lowerKind(kind) + " is not the one after a fresh start",
			Want:  d.Path + " is " + d.Want + ", as after a fresh start with the same spec", Got: d.Path + " is " + d.Got,
		})
	}
	return wrong
}

// statusDifferences compares what custom resources say to users who wait for them: the status of conditions, and the phase. A
// condition that is absent is one that is false.
func statusDifferences(subjects []*unstructured.Unstructured, changed, fresh *made) (found []compare.Difference) {
	for _, subject := range subjects {
		key, now := find(changed.state, subject)
		_, then := find(fresh.state, subject)
		if now == nil || then == nil {
			continue
		}
		got, want := wordsOf(now), wordsOf(then)
		for _, path := range sortedWords(got, want) {
			if got[path] != want[path] {
				found = append(found, compare.Difference{Object: key.String(), Path: path, Want: orAbsent(want[path]), Got: orAbsent(got[path])})
			}
		}
	}
	return found
}

func orAbsent(word string) string {
	if word == "" {
		return "absent"
	}
	return word
}

func sortedWords(a, b map[string]string) (paths []string) {
	for _, words := range []map[string]string{a, b} {
		for path := range words {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// wordsOf returns the status of the conditions that are not false, and the phase.
func wordsOf(object *unstructured.Unstructured) map[string]string {
	words := map[string]string{}
	for _, one := range conditionsOf(object) {
		if one.status != "False" {
			words["status.conditions["+one.kind+"].status"] = one.status
		}
	}
	for _, name := range phaseFields {
		if word, _, _ := unstructured.NestedString(object.Object, "status", name); word != "" {
			words["status."+name] = word
		}
	}
	return words
}

type conditionWords struct{ kind, status, reason, message string }

func conditionsOf(object *unstructured.Unstructured) (all []conditionWords) {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range list {
		fields, _ := one.(map[string]any)
		text := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		all = append(all, conditionWords{text("type"), text("status"), text("reason"), text("message")})
	}
	return all
}

// isUnhealthy reports whether a custom resource says that it is not as it should be.
func isUnhealthy(subjects []*unstructured.Unstructured, m *made) bool {
	return slices.ContainsFunc(subjects, func(subject *unstructured.Unstructured) bool {
		_, object := find(m.state, subject)
		if object == nil {
			return false
		}
		status, _ := apply.Status(object)
		waits, _ := unfinished(object)
		return status != "Current" || waits != "" || conditionOf(object, "Available") == "False"
	})
}

const refusalWords = `can ?not|can't|could not|unable|immutable|forbidden|(must|may) not|not (supported|allowed|permitted|possible|changed)|unsupported|ignor|invalid|refus|reject|fail|error|recreate|denied|degraded|stalled|blocked`

var (
	// refusing are words of messages about a change that is not carried out.
	refusing = regexp.MustCompile(`(?i)\b(` + refusalWords + `|pending)`)
	// troubled are such words in reasons, phases and the names of conditions. There, something that is pending is still at work.
	troubled = regexp.MustCompile(`(?i)\b(` + refusalWords + `|required|paused|suspended)`)
	// harmless is a message that there is nothing of the kind, such as "0 failed" or "no pods are pending".
	harmless = regexp.MustCompile(`(?i)\b(0|no|none|without)\b( [a-z]+){0,2} (fail|error|pending|ignored|rejected|invalid)`)
	// clauses are parted by these.
	clauseEnd = regexp.MustCompile(`[,;:.](\s+|$)|\n`)
	// counted are times, counts, addresses and hashes.
	counted = regexp.MustCompile(`\S*\d\S*`)
)

// spaced writes the words of a name apart.
func spaced(name string) string { return humps.ReplaceAllString(name, "$1 $2") }

// refusalsIn returns the clauses of messages that speak of a change that is not carried out, without what is different each time.
func refusalsIn(object *unstructured.Unstructured) map[string]bool {
	found := map[string]bool{}
	for _, one := range conditionsOf(object) {
		if reason := spaced(one.reason); troubled.MatchString(harmless.ReplaceAllString(reason, "")) {
			found[reason] = true
		}
		for _, clause := range clauseEnd.Split(one.message, -1) {
			if refusing.MatchString(harmless.ReplaceAllString(clause, "")) {
				found[counted.ReplaceAllString(strings.TrimSpace(clause), "#")] = true
			}
		}
	}
	return found
}

// saysSo reports whether a message in a status, which a fresh start does not have, explains what is different. The rest of the message
// may well be another: it may tell what was done.
func saysSo(subjects []*unstructured.Unstructured, now, fresh *made) bool {
	return slices.ContainsFunc(subjects, func(subject *unstructured.Unstructured) bool {
		_, live := find(now.state, subject)
		_, then := find(fresh.state, subject)
		if live == nil || then == nil {
			return false
		}
		known := refusalsIn(then)
		for clause := range refusalsIn(live) {
			if !known[clause] {
				return true
			}
		}
		return false
	})
}

// find finds an object in a state. A live object without a namespace is of a kind that has none; that is not known of all kinds of
// other projects that a scenario brings.
func find(state world.State, object *unstructured.Unstructured) (world.Key, *unstructured.Unstructured) {
	for key, one := range state {
		if key.Kind == object.GetKind() && key.Name == object.GetName() && (key.Namespace == object.GetNamespace() || key.Namespace == "") && key.Group == object.GroupVersionKind().Group {
			return key, one
		}
	}
	return world.Key{}, nil
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// lowerKind names one object of a kind within a sentence.
func lowerKind(kind string) string {
	text := aKind(kind)
	return strings.ToLower(text[:1]) + text[1:]
}
