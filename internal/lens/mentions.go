// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxMentions bounds how many values are remembered, and maxName is the length of the longest name of an object.
	maxMentions = 64 << 10
	maxName     = 253
	// minPart is the length of the shortest value that is found within a name: shorter ones are in too many.
	minPart = 3
)

// mentions are values in custom resources that may be names. An object that is called like one of them is probably called so
// because of it, and otherwise for the next custom resource. The values are not recorded, only which names they match.
type mentions map[string]bool

// learn takes the name of a custom resource and its values, except for those of its status.
func (m mentions) learn(group string, object client.Object) {
	if object == nil || known.IsGroupRegistered(group) || group == "apiregistration.k8s.io" {
		return
	}
	m.learnFrom(object.GetName())
	for field, value := range asUnstructured(object).Object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			m.learnFrom(value)
		}
	}
}

func (m mentions) learnFrom(value any) {
	switch value := value.(type) {
	case string:
		if len(m) < maxMentions && len(value) <= maxName && isName(value) {
			m[value] = true
		}
	case []any:
		for _, one := range value {
			m.learnFrom(one)
		}
	case map[string]any:
		for _, one := range value {
			m.learnFrom(one)
		}
	}
}

// isName reports whether a value could be the name of an object, or a part of it.
func isName(value string) bool {
	return value != "" && !strings.ContainsFunc(value, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !isSeparator(r)
	})
}

func isSeparator(r rune) bool { return r == '-' || r == '.' || r == ':' }

// in returns which of the names in a request, of objects and namespaces, custom resources mention.
func (m mentions) in(r *Request) (found []string) {
	if len(m) == 0 {
		return nil
	}
	check := func(name string) {
		if name != "" && !slices.Contains(found, name) && m.match(name) {
			found = append(found, name)
		}
	}
	check(r.Resource.Namespace)
	check(r.Resource.Name)
	if r.Query != nil {
		check(selectedName(r.Query.FieldSelector))
	}
	for _, implied := range r.impliedOfSender() {
		check(implied.Resource.Namespace)
		check(implied.Resource.Name)
	}
	return found
}

// match reports whether a name is one of the values, or has one between separators, as in VALUE-credentials.
func (m mentions) match(name string) bool {
	if m[name] {
		return true
	}
	if len(name) > maxName {
		return false
	}
	starts, ends := []int{0}, []int{}
	for i, r := range name {
		if isSeparator(r) {
			starts, ends = append(starts, i+1), append(ends, i)
		}
	}
	ends = append(ends, len(name))
	for i, start := range starts {
		for _, end := range ends[i:] {
			if end-start >= minPart && m[name[start:end]] {
				return true
			}
		}
	}
	return false
}
