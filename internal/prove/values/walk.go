// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// props is the schema of one property.
type props = apiextensionsv1.JSONSchemaProps

// site is one property of the object, present or not.
type site struct {
	path []string
	// name is the name of the property. An element of a list or of a map has the name of the list or map.
	name string
	// in is the name of the property around it.
	in       string
	schema   *props
	value    any
	present  bool
	required bool
	// element is set for elements of lists and values of maps.
	element bool
	// closed is set below a known type, whose optional properties are not made up from the schema.
	closed bool
	// opaque is set below a property without a schema: what its names seem to mean is not certain.
	opaque bool
	// pod is set for properties of a PodSpec and of a container. Many combinations of them are refused for pods.
	pod bool
	// known is set if the property is of a known type itself, and derived while values come from its schema alone.
	known, derived bool
	// around is the schema of the object that the property belongs to.
	around *props
	// also switches on what the property is part of.
	also []Change
}

// current returns the value of the property, or its default.
func (s site) current() any {
	if s.present {
		return s.value
	}
	return defaultOf(s.schema)
}

func defaultOf(schema *props) any {
	if schema.Default == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(schema.Default.Raw, &value); err != nil {
		return nil
	}
	return normalize(value)
}

// child returns a property of an object.
func (s site) child(name string) site {
	schema := s.schema.Properties[name]
	fields, _ := s.value.(map[string]any)
	value, present := fields[name]
	child := site{
		path: append(slices.Clone(s.path), name), name: name, in: s.name, schema: &schema, value: value, present: present,
		required: slices.Contains(s.schema.Required, name), around: s.schema, also: s.also, closed: s.closed, opaque: s.opaque,
		pod: has(s.schema, "containers") || has(s.schema, "name", "image", "command", "volumeMounts"),
	}
	if sw := switchOf(s.schema); sw != "" && sw != name && fields[sw] != true {
		on := Change{Path: append(slices.Clone(s.path), sw), Value: true, Class: Valid, Why: "switched on"}
		child.also = append(slices.Clone(s.also), on)
	}
	return child
}

// switchOf returns the property that switches an object on and off, if it has one.
func switchOf(schema *props) string {
	for _, name := range []string{"enabled", "enable"} {
		if property, has := schema.Properties[name]; has && property.Type == "boolean" {
			return name
		}
	}
	return ""
}

// elementAt returns an element of a list or a value of a map.
func (s site) elementAt(key string, schema *props, value any) site {
	return site{
		path: append(slices.Clone(s.path), key), name: s.name, in: s.in, schema: schema, value: value,
		present: true, required: true, element: true, also: s.also, closed: s.closed, opaque: s.opaque,
	}
}

// walker collects candidates from the properties of an object.
type walker struct {
	options    Options
	object     map[string]any
	sampler    *sampler
	candidates []candidate
	// within is how many blocks the object lacks around what is visited.
	within int
}

// elements is how many elements of a list are changed; the others have the same schema.
const elements = 2

// notWalked are properties of the root that are not part of what users ask for.
var notWalked = []string{"apiVersion", "kind", "metadata", "status"}

// root visits all properties of the object except those that every object has.
func (w *walker) root(schema *props) {
	root := site{schema: schema, value: w.object, present: true, required: true}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if slices.Contains(notWalked, name) {
			continue
		}
		child := root.child(name)
		// Without its spec an object says nothing, and a spec without content is proposed property by property.
		child.required = true
		if !child.present && child.schema.Type == "object" && len(child.schema.Properties) > 0 {
			child.value, child.present = map[string]any{}, true
		}
		w.visit(child)
	}
}

// visit proposes changes to a property and to what is below it.
func (w *walker) visit(s site) {
	of := slices.IndexFunc(known, func(k knownType) bool { return k.matches(s) })
	if of >= 0 {
		known[of].propose(w, s)
		s.known = true
	}
	s.derived = true
	w.unset(s)
	s.closed = s.closed || of >= 0 && known[of].closed
	if s.closed && !s.present {
		return
	}
	switch kindOf(s.schema) {
	case "object":
		w.visitObject(s)
	case "map":
		w.visitMap(s)
	case "array":
		w.visitList(s)
	case "string":
		w.visitString(s)
	case "integer", "number":
		w.visitNumber(s)
	case "boolean":
		w.visitBool(s)
	case "opaque", "":
		w.visitOpaque(s)
	}
}

// visitOpaque proposes changes to the values of a property without a schema. Only the operator knows which values it accepts there, so
// these changes are limits, except for fields of a pod.
func (w *walker) visitOpaque(s site) {
	fields, ok := s.value.(map[string]any)
	if !ok || s.schema.XEmbeddedResource {
		return
	}
	s.schema, s.closed, s.opaque = schemaOf(fields), true, true
	w.visitObject(s)
}

// schemaOf returns the schema of a value as far as the value shows it.
func schemaOf(value any) *props {
	switch v := value.(type) {
	case map[string]any:
		schema := &props{Type: "object", Properties: map[string]props{}}
		for name, field := range v {
			schema.Properties[name] = *schemaOf(field)
		}
		return schema
	case []any:
		schema := &props{Type: "array"}
		if len(v) > 0 {
			schema.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: schemaOf(v[0])}
		}
		return schema
	case string:
		return &props{Type: "string"}
	case bool:
		return &props{Type: "boolean"}
	case int64:
		return &props{Type: "integer"}
	case float64:
		return &props{Type: "number"}
	}
	return &props{}
}

// kindOf returns the type of a schema, with map for an object whose keys are free and "" for one without a schema.
func kindOf(schema *props) string {
	switch {
	case schema.XIntOrString:
		return "int-or-string"
	case schema.Type == "object" && len(schema.Properties) == 0 && schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map"
	case schema.Type == "object" && len(schema.Properties) == 0:
		return "opaque"
	default:
		return schema.Type
	}
}

// itemsOf returns the schema of the elements of a list.
func itemsOf(schema *props) *props {
	if schema.Items == nil {
		return nil
	}
	return schema.Items.Schema
}

// unset proposes to remove an optional property.
func (w *walker) unset(s site) {
	if !s.present || s.required {
		return
	}
	s.also = nil // What is removed need not be switched on.
	switch s.value.(type) {
	case map[string]any, []any:
		w.add(s, groupRemoval, Valid, "removing an optional block", any(nil))
	default:
		w.add(s, groupOther, Valid, "removing an optional value", any(nil))
	}
}

func (w *walker) visitObject(s site) {
	if s.present {
		for _, name := range slices.Sorted(maps.Keys(s.schema.Properties)) {
			if child := s.child(name); child.present || !s.closed {
				w.visit(child)
			}
		}
		return
	}
	values, guessed := w.sampler.objects(s.schema, s.name)
	if len(values) == 0 {
		return
	}
	w.add(s, groupOther, classOf(guessed), "adding an optional block", values...)
	w.with(s, values)
	w.inside(s, values[0], guessed)
}

// deepest is how many blocks that an object lacks are added around a change at most.
const deepest = 2

// inside proposes an optional block together with each change to a block, list or map in it.
func (w *walker) inside(s site, base any, guessed bool) {
	if w.within == deepest {
		return
	}
	inner := &walker{options: w.options, object: w.object, sampler: w.sampler, within: w.within + 1}
	block := s
	block.value, block.present, block.also = base, true, nil
	for _, name := range slices.Sorted(maps.Keys(s.schema.Properties)) {
		if child := block.child(name); !s.closed && isContainer(child.schema) {
			inner.visit(child)
		}
	}
	for _, c := range inner.candidates {
		below := Path(c.property[len(s.path):])
		c.alternatives = filled(base, len(s.path), c)
		if guessed && c.change.Class == Valid {
			c.change.Class, c.group = Limit, groupLimit
		}
		c.change = Change{Path: s.path, Class: c.change.Class, Why: "adding an optional block with " + below + ": " + c.why, Also: s.also}
		if c.sort == sortPresent {
			c.sort = sortPossible // only the block that is added has it
		}
		w.candidates = append(w.candidates, c)
	}
}

// isContainer reports whether a property has others below it.
func isContainer(schema *props) bool {
	kind := kindOf(schema)
	return kind == "object" || kind == "map" || kind == "array"
}

// filled returns copies of a block, one with each value that the candidate proposes for a property of the block. length is the
// number of steps in the path of the block.
func filled(block any, length int, c candidate) (blocks []any) {
	for _, value := range c.alternatives {
		if value == nil {
			continue // the object lacks it anyway
		}
		whole, err := set(normalize(block), c.change.Path[length:], normalize(value))
		for _, also := range c.change.Also {
			if err == nil {
				whole, err = set(whole, also.Path[length:], normalize(also.Value))
			}
		}
		if err == nil {
			blocks = append(blocks, whole)
		}
	}
	return blocks
}

// with proposes an optional block with each of its optional properties, one at a time.
func (w *walker) with(s site, bases []any) {
	for _, name := range slices.Sorted(maps.Keys(s.schema.Properties)) {
		property := s.schema.Properties[name]
		child := s.child(name)
		if slices.ContainsFunc(known, func(k knownType) bool { return k.closed && k.matches(child) }) {
			continue // the schema alone does not tell which of its values mean something: see inside
		}
		more, guessed := w.sampler.sample(&property, name)
		if more == nil {
			continue
		}
		var alternatives []any
		for _, base := range bases {
			object := normalize(base).(map[string]any)
			if _, has := object[name]; has {
				continue
			}
			object[name] = more
			alternatives = append(alternatives, object)
		}
		if len(alternatives) > 0 {
			w.add(s, groupOther, classOf(guessed), "adding an optional block with "+name, alternatives...)
			w.candidates[len(w.candidates)-1].property = append(slices.Clone(s.path), name)
		}
	}
}

// classOf returns Limit for values with made-up content, which an operator may carry out or report.
func classOf(guessed bool) Class {
	if guessed {
		return Limit
	}
	return Valid
}

// add adds a candidate. Inside a known type, a value that only the schema suggests may be meaningless: it is a limit. So is what
// has no schema, unless it is in a pod.
func (w *walker) add(s site, g group, class Class, why string, alternatives ...any) {
	if class == Valid && s.derived && (s.closed || s.pod && !s.present) || s.opaque && !s.pod {
		class, g = Limit, groupLimit
	}
	if class != Valid && g == groupOther {
		g = groupLimit
	}
	if class == Misuse {
		g = groupMisuse
	}
	w.candidates = append(w.candidates, candidate{
		change: Change{Path: s.path, Class: class, Why: why, Also: s.also}, alternatives: alternatives,
		group: g, sort: s.sort(), property: s.path, why: why, key: strings.Join(s.path, "\x00"),
	})
}

// sort returns the sort of a change to the property.
func (s site) sort() sort {
	switch {
	case s.present:
		return sortPresent
	case !s.derived, s.schema.Type == "boolean":
		return sortTelling
	}
	return sortPossible
}

func (w *walker) valid(s site, why string, alternatives ...any) {
	w.add(s, groupOther, Valid, why, alternatives...)
}

func (w *walker) limit(s site, why string, alternatives ...any) {
	w.add(s, groupLimit, Limit, why, alternatives...)
}

func (w *walker) misuse(s site, why string, alternatives ...any) {
	w.add(s, groupMisuse, Misuse, why, alternatives...)
}

// visitSome visits the first elements of a list.
func (w *walker) visitSome(s site, list []any) {
	for at, element := range list {
		if at == elements {
			return
		}
		w.visit(s.elementAt(strconv.Itoa(at), itemsOf(s.schema), element))
	}
}
