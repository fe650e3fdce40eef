// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/opdock/opdock/internal/prove/compare"
)

// Some operators make a new object for each attempt, and count them in the name: web-1 for the first, web-2 for the next. The last one
// stands for the one that is expected.

// numbered is a name that ends with such a number.
var numbered = regexp.MustCompile(`^(.*-)(\d{1,5})$`)

// serialOf returns what the names of such objects have in common, and the number; empty for others. Kinds of Kubernetes count what
// belongs together, such as the pods of a StatefulSet.
func serialOf(object string) (stem string, number int) {
	kind, _, _ := strings.Cut(object, " ")
	match := numbered.FindStringSubmatch(object)
	if match == nil || ofKubernetesItself[kind] {
		return "", 0
	}
	number, err := strconv.Atoi(match[2])
	if err != nil {
		return "", 0
	}
	return match[1], number
}

// ofKubernetesItself are the kinds of Kubernetes.
var ofKubernetesItself = func() map[string]bool {
	kinds := map[string]bool{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		kinds[kind.Kind] = true
	}
	return kinds
}()

// withoutSuccessors leaves out an object that is missing if there is a later one instead, and that one. After a change, earlier ones may
// be left beside the one that is expected. Notes of how many there were are not compared then. If several such objects are expected, they
// are the members of something, and each of them counts. So do custom resources of the scenario.
func (c *campaign) withoutSuccessors(found []compare.Difference, want compare.Shape, changed bool) []compare.Difference {
	var expected, missing, extra serials
	for name := range want.Objects {
		expected.add(name)
	}
	for _, d := range found {
		switch {
		case d.Path != "" || c.isSubject(d.Object):
		case d.Want == "present" && d.Got == "absent":
			missing.add(d.Object)
		case d.Want == "absent" && d.Got == "present":
			extra.add(d.Object)
		}
	}
	succeeded := map[string]bool{}
	for stem, later := range extra {
		if len(expected[stem]) == 1 && slices.Min(later) > expected[stem][0] && (changed || len(missing[stem]) == 1 && len(later) == 1) {
			succeeded[stem] = true
		}
	}
	if len(succeeded) == 0 {
		return found
	}
	return slices.DeleteFunc(found, func(d compare.Difference) bool {
		stem, _ := serialOf(d.Object)
		return d.Path == "" && succeeded[stem] || d.IsStatus() && isPast(d, want)
	})
}

// succeeds reports whether an object was created instead of the one with an earlier number.
func succeeds(object string, want, got map[string]bounds) bool {
	stem, number := serialOf(object)
	if stem == "" {
		return false
	}
	for other, w := range want {
		before, earlier := serialOf(other)
		if before == stem && earlier < number && w.created[1] > got[other].created[1] {
			return true
		}
	}
	return false
}

// serials are the numbers of objects, by what their names have in common.
type serials map[string][]int

func (s *serials) add(object string) {
	if stem, number := serialOf(object); stem != "" {
		if *s == nil {
			*s = serials{}
		}
		(*s)[stem] = append((*s)[stem], number)
	}
}
