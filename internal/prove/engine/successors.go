// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/opdock/opdock/internal/prove/compare"
)

// Some operators make a new object for each attempt, and count them in the name: web-1 for the first, web-2 for the next. The last one
// stands for the one that is expected.

// numbered is a name that ends with such a number.
var numbered = regexp.MustCompile(`^(.*-)\d{1,5}$`)

// serialStem returns what the names of such objects have in common; empty for others. Kinds of Kubernetes count what belongs together,
// such as the pods of a StatefulSet.
func serialStem(object string) string {
	kind, _, _ := strings.Cut(object, " ")
	match := numbered.FindStringSubmatch(object)
	if match == nil || ofKubernetesItself[kind] {
		return ""
	}
	return match[1]
}

// ofKubernetesItself are the kinds of Kubernetes.
var ofKubernetesItself = func() map[string]bool {
	kinds := map[string]bool{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		kinds[kind.Kind] = true
	}
	return kinds
}()

// withoutSuccessors leaves out objects that are missing if there is a later one instead, and that one. After a change, earlier ones may
// be left beside the one that is expected. Notes of how many there were are not compared then.
func withoutSuccessors(found []compare.Difference, want compare.Shape, changed bool) []compare.Difference {
	missing, extra := map[string]bool{}, map[string]bool{}
	for _, d := range found {
		switch stem := serialStem(d.Object); {
		case d.Path != "" || stem == "":
		case d.Want == "present" && d.Got == "absent":
			missing[stem] = true
		case d.Want == "absent" && d.Got == "present":
			extra[stem] = true
		}
	}
	succeeded := map[string]bool{}
	for stem := range extra {
		if missing[stem] || changed && hasSerial(want, stem) {
			succeeded[stem] = true
		}
	}
	if len(succeeded) == 0 {
		return found
	}
	return slices.DeleteFunc(found, func(d compare.Difference) bool {
		return d.Path == "" && succeeded[serialStem(d.Object)] || d.IsStatus() && isPast(d, want)
	})
}

func hasSerial(shape compare.Shape, stem string) bool {
	for name := range shape.Objects {
		if serialStem(name) == stem {
			return true
		}
	}
	return false
}
