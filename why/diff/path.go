// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"strconv"
	"strings"
)

// Step is a part of a path: a field, a key of a map, or an element of a list.
type Step struct {
	Name string
	// Key and Value identify an element; without them, its index does.
	Key, Value string
	index      int
	Kind       StepKind
}

// StepKind is the kind of a step in a path.
type StepKind uint8

// The kinds of steps.
const (
	StepField StepKind = iota
	StepKey
	StepElement
	stepIndex
)

// AppendPath appends a path as it is shown.
func AppendPath(text []byte, path []Step) []byte {
	for i := range path {
		switch s := &path[i]; s.Kind {
		case StepField, StepKey:
			if s.Kind == StepKey && strings.ContainsAny(s.Name, "./[]\"") {
				text = append(text, '[')
				text = append(text, Shorten(s.Name, 253)...)
				text = append(text, ']')
				continue
			}
			if i > 0 {
				text = append(text, '.')
			}
			text = append(text, Shorten(s.Name, 253)...)
		case StepElement:
			text = append(text, '[')
			text = append(text, s.Key...)
			text = append(text, '=')
			text = append(text, Shorten(s.Value, 253)...)
			text = append(text, ']')
		case stepIndex:
			text = append(text, '[')
			text = strconv.AppendInt(text, int64(s.index), 10)
			text = append(text, ']')
		}
	}
	return text
}

// ParsePath reads what AppendPath has written. Names that could be read in two ways are not read at all.
func ParsePath(path string) (steps []Step, ok bool) {
	if strings.Contains(path, "…") {
		return nil, false
	}
	for path != "" {
		if inner, found := strings.CutPrefix(path, "["); found {
			name, rest, closed := strings.Cut(inner, "]")
			if !closed || rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, false
			}
			key, value, isElement := strings.Cut(name, "=")
			if isElement {
				steps = append(steps, Step{Kind: StepElement, Key: key, Value: value})
			} else {
				// It may be an index, which is the name of no field.
				steps = append(steps, Step{Name: name})
			}
			path = rest
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		steps = append(steps, Step{Name: path[:end]})
		path = path[end:]
	}
	return steps, len(steps) > 0
}
