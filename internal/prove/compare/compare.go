// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Difference is a difference between the actual and the expected state.
type Difference struct {
	Object string `json:"object"`
	// Path is the field; empty if the object should not be there, or should.
	Path string `json:"path,omitempty"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// String describes it in one line.
func (d Difference) String() string {
	if d.Path == "" {
		return fmt.Sprintf("%s: %s instead of %s", d.Object, d.Got, d.Want)
	}
	return fmt.Sprintf("%s: %s is %s instead of %s", d.Object, d.Path, d.Got, d.Want)
}

// IsStatus reports whether only the status of an object differs.
func (d Difference) IsStatus() bool {
	return d.Path == "status" || strings.HasPrefix(d.Path, "status.")
}

// isOneSided reports whether only one of the states has the field.
func (d Difference) isOneSided() bool { return d.Want == absent || d.Got == absent }

// Mask is what differs between undisturbed runs.
type Mask struct {
	// Fields are paths in objects, and Objects are objects that do not always exist.
	Fields  map[string]map[string]bool `json:"fields,omitempty"`
	Objects map[string]bool            `json:"objects,omitempty"`
	// Missing are those of Fields that only one of two runs has. The others have another value in each run, and must be there.
	Missing map[string]map[string]bool `json:"missing,omitempty"`
	// Stems are the prefixes of random names, by which objects are counted. Fixed are names that begin the same, but do not differ
	// between runs.
	Stems map[string]bool `json:"stems,omitempty"`
	Fixed map[string]bool `json:"fixed,omitempty"`
	// Elements are elements of lists, by the path of their key, that only one of two runs has. Shared are those that both have.
	Elements map[string]map[string]bool `json:"elements,omitempty"`
	Shared   map[string]map[string]bool `json:"shared,omitempty"`
}

// NewMask returns a mask that hides nothing.
func NewMask() *Mask {
	return &Mask{
		Fields: map[string]map[string]bool{}, Objects: map[string]bool{}, Stems: map[string]bool{}, Fixed: map[string]bool{},
		Missing: map[string]map[string]bool{}, Elements: map[string]map[string]bool{}, Shared: map[string]map[string]bool{},
	}
}

// Size is how much is masked.
func (m *Mask) Size() int {
	size := len(m.Objects) + len(m.Stems)
	for _, paths := range m.Fields {
		size += len(paths)
	}
	return size
}

var lastPart = regexp.MustCompile(`[-.][a-z0-9]{4,}$`)

// Stem is a name without its last part, which may be random.
func Stem(name string) string { return lastPart.ReplaceAllString(name, "-*") }

// middlePart is a part of a name that others follow. It may be random.
var middlePart = regexp.MustCompile(`[-.][a-z0-9]{4,}`)

// Inner returns a name that begins with the random name of another object, with the random part left out. IsInner knows such names, or
// their stems.
func Inner(name string, isInner func(name, stem string) bool) (common string, random bool) {
	for _, at := range middlePart.FindAllStringIndex(name, -1) {
		if rest := name[at[1]:]; strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, ".") {
			if stem := name[:at[0]] + "-*"; isInner(name[:at[1]], stem) {
				return stem + rest, true
			}
		}
	}
	return name, false
}

// LearnRuns masks what differs between two states that should be equal, of clusters that have nothing in common: what has the same
// name on both has no random name.
func (m *Mask) LearnRuns(a, b Shape) {
	m.learnStems(a, b)
	for name := range a.Objects {
		if _, both := b.Objects[name]; both && m.mayBeRandom(name) {
			m.Fixed[name] = true
		}
	}
	m.Learn(a, b)
}

// Learn masks what differs between two states that should be equal.
func (m *Mask) Learn(a, b Shape) {
	m.learnStems(a, b)
	a, b = m.count(a), m.count(b)
	m.learnElements(a, b)
	for _, d := range differences(a, b) {
		if d.Path == "" {
			m.Objects[d.Object] = true
			continue
		}
		note(m.Fields, d.Object, d.Path)
		if d.isOneSided() {
			note(m.Missing, d.Object, d.Path)
		}
	}
}

func (m *Mask) learnStems(a, b Shape) {
	a, b = m.count(a), m.count(b)
	// Names that only one of them has may be random.
	only := map[string]bool{}
	for name := range a.Objects {
		if _, both := b.Objects[name]; !both {
			only[Stem(name)] = true
		}
	}
	for name := range b.Objects {
		if _, both := a.Objects[name]; !both && only[Stem(name)] && Stem(name) != name {
			m.Stems[Stem(name)] = true
		}
	}
}

// learnElements notes which elements with a key only one of two states has, and which both have.
func (m *Mask) learnElements(a, b Shape) {
	for object, fields := range a.Objects {
		if _, both := b.Objects[object]; !both {
			continue
		}
		inA, inB := keyedIn(fields), keyedIn(b.Objects[object])
		for element := range inA {
			if inB[element] {
				note(m.Shared, object, element)
			} else {
				note(m.Elements, object, element)
			}
		}
		for element := range inB {
			if !inA[element] {
				note(m.Elements, object, element)
			}
		}
	}
}

func note(in map[string]map[string]bool, object, path string) {
	if in[object] == nil {
		in[object] = map[string]bool{}
	}
	in[object][path] = true
}

// count counts objects with names that are known to be random.
func (m *Mask) count(shape Shape) Shape {
	counted := Shape{Objects: map[string]Fields{}, Counts: maps.Clone(shape.Counts)}
	if counted.Counts == nil {
		counted.Counts = map[string]int{}
	}
	inner := map[string]bool{} // random names, without the kind
	for name := range shape.Objects {
		if m.isRandom(name) {
			_, rest, _ := strings.Cut(name, " ")
			inner[rest] = true
		}
	}
	isInner := func(name, _ string) bool { return inner[name] }
	for name, fields := range shape.Objects {
		if common, random := m.counted(name, isInner); random {
			counted.Counts[common]++
			continue
		}
		counted.Objects[name] = fields
	}
	for name, n := range shape.Counts {
		if common, random := m.counted(name, isInner); random && common != name {
			counted.Counts[common] += n
			delete(counted.Counts, name)
		}
	}
	return counted
}

func (m *Mask) isRandom(name string) bool { return m.Stems[Stem(name)] && !m.Fixed[name] }

// counted returns the name by which an object is counted, if its name is known to be random: itself, or because it begins with the name
// of another object that is, of any kind. IsInner knows such names, or their stems.
func (m *Mask) counted(name string, isInner func(name, stem string) bool) (common string, random bool) {
	if m.isRandom(name) {
		return Stem(name), true
	}
	if m.Fixed[name] {
		return name, false
	}
	kind, rest, _ := strings.Cut(name, " ")
	common, random = Inner(rest, isInner)
	return kind + " " + common, random
}

// mayBeRandom reports whether the name of an object is known to be random, or begins like one that is.
func (m *Mask) mayBeRandom(name string) bool {
	_, random := m.counted(name, func(_, stem string) bool {
		for one := range m.Stems {
			if _, other, _ := strings.Cut(one, " "); other == stem {
				return true
			}
		}
		return false
	})
	return random
}

// Differences returns the differences from the expected state, without masked ones.
func (m *Mask) Differences(want, got Shape) []Difference {
	return slices.DeleteFunc(differences(m.count(want), m.count(got)), m.hides)
}

func (m *Mask) hides(d Difference) bool {
	if m.Objects[d.Object] || d.Want == behind && d.Got == "current" { // the condition was only renewed
		return true
	}
	if m.Fields[d.Object][d.Path] { // a list without keys may be longer or shorter each time
		return !d.isOneSided() || m.Missing[d.Object][d.Path] || hasIndex.MatchString(d.Path)
	}
	// A list or a map that differs may have other elements each time.
	for path := range m.Fields[d.Object] {
		if strings.HasPrefix(path, d.Path+"[") || strings.HasPrefix(path, d.Path+".") || m.sameElement(d.Object, path, d.Path) {
			return true
		}
	}
	return false
}

var (
	inBrackets = regexp.MustCompile(`\[[^\]]*\]`)
	anIndex    = regexp.MustCompile(`\[\d+\]$`)
	hasIndex   = regexp.MustCompile(`\[\d+\]`)
)

// sameElement reports whether a path that was learned leads to the same field as another one, of elements that cannot be told apart:
// lists without a key have them in any order, and keys may be random, also within an element that is new. Elements whose key is the
// same in all runs are compared one by one.
func (m *Mask) sameElement(object, learned, path string) bool {
	if !strings.Contains(learned, "[") || inBrackets.ReplaceAllString(learned, "[]") != inBrackets.ReplaceAllString(path, "[]") {
		return false
	}
	// A restart also shares the random keys of the state that it begins with. Separate runs showed those before.
	isKnown := func(element string) bool { return m.Shared[object][element] && !m.Elements[object][element] }
	before, elements := elementsIn(learned), elementsIn(path)
	isRandom := slices.ContainsFunc(before, func(element string) bool { return !isKnown(element) })
	for i, element := range elements {
		sameKey := before[i][strings.LastIndex(before[i], "["):] == element[strings.LastIndex(element, "["):]
		if !sameKey && (isKnown(element) || isKnown(before[i]) && !isRandom) {
			return false
		}
	}
	return true
}

// elementsIn are the elements of lists that a path leads through.
func elementsIn(path string) (elements []string) {
	for _, at := range inBrackets.FindAllStringIndex(path, -1) {
		elements = append(elements, path[:at[1]])
	}
	return elements
}

// keyedIn are the elements of an object that have a key.
func keyedIn(fields Fields) map[string]bool {
	elements := map[string]bool{}
	for path := range fields {
		for _, element := range elementsIn(path) {
			if !anIndex.MatchString(element) {
				elements[element] = true
			}
		}
	}
	return elements
}

const (
	present = "present"
	absent  = "absent"
)

func differences(want, got Shape) (found []Difference) {
	for name, fields := range want.Objects {
		other, there := got.Objects[name]
		if !there {
			found = append(found, Difference{Object: name, Want: present, Got: absent})
			continue
		}
		found = append(found, fieldDifferences(name, fields, other)...)
	}
	for name, fields := range got.Objects {
		if _, wanted := want.Objects[name]; !wanted {
			text := present
			if gone := fields[""]; gone != "" {
				text = gone
			}
			found = append(found, Difference{Object: name, Want: absent, Got: text})
		}
	}
	for name, count := range want.Counts {
		if got.Counts[name] != count {
			found = append(found, Difference{Object: name, Want: fmt.Sprintf("%d of them", count), Got: fmt.Sprintf("%d of them", got.Counts[name])})
		}
	}
	for name, count := range got.Counts {
		if _, wanted := want.Counts[name]; !wanted {
			found = append(found, Difference{Object: name, Want: "none of them", Got: fmt.Sprintf("%d of them", count)})
		}
	}
	slices.SortFunc(found, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Path, b.Path))
	})
	return found
}

// rank puts what matters most first.
func rank(d Difference) int {
	kind, _, _ := strings.Cut(d.Object, " ")
	switch {
	case d.Path == "" && kind == "PersistentVolume": // which is made of a claim
		return 3 //nolint:mnd // after what it is made of
	case d.Path == "" && slices.Contains(derived, kind):
		return 2
	case d.Path == "":
		return 0
	case strings.HasPrefix(d.Path, "metadata."):
		return 4 //nolint:mnd // before the last
	case d.IsStatus():
		return 5 //nolint:mnd // the last
	}
	return 1
}

// derived are kinds that the controllers of a cluster make of others, whose fields say more about the cause.
var derived = []string{"Pod", "ReplicaSet", "ControllerRevision", "PersistentVolumeClaim", "Endpoints", "EndpointSlice"}

func fieldDifferences(name string, want, got Fields) (found []Difference) {
	for path, value := range want {
		if other, there := got[path]; !there {
			found = append(found, Difference{Object: name, Path: path, Want: value, Got: absent})
		} else if other != value {
			found = append(found, Difference{Object: name, Path: path, Want: value, Got: other})
		}
	}
	for path, value := range got {
		if _, wanted := want[path]; !wanted {
			found = append(found, Difference{Object: name, Path: path, Want: absent, Got: value})
		}
	}
	return found
}

// HidesObject reports whether the existence of an object is masked.
func (m *Mask) HidesObject(name string) bool {
	return m.Objects[name] || m.mayBeRandom(name)
}
