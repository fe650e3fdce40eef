// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	// mostValues bounds what aliases can make of a small file, and mostDepth what a loop of them can.
	mostValues = 200_000
	mostDepth  = 100
)

// resolve returns what an alias stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// kindOf describes a node in a message.
func kindOf(n *yaml.Node) string {
	switch n = resolve(n); {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "nothing"
	default:
		return strconv.Quote(shown(n))
	}
}

// shown is a scalar in a message.
func shown(n *yaml.Node) string {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode {
		return kindOf(n)
	}
	if runes := []rune(n.Value); len(runes) > 60 {
		return string(runes[:57]) + "..."
	}
	return n.Value
}

// fieldOf returns a field of a mapping.
func fieldOf(n *yaml.Node, name string) (*yaml.Node, bool) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1], true
		}
	}
	return nil, false
}

// mapping returns the fields of a mapping, and reports those that are not among the given names. Fields without a value
// are reported, too, and left out. It returns nil for anything else than a mapping.
func (p *parser) mapping(n *yaml.Node, what string, names ...string) map[string]*yaml.Node {
	position := n
	if n = resolve(n); n.Kind != yaml.MappingNode {
		p.fail(position, "%s has fields (%s), but here is %s", what, strings.Join(names, ", "), kindOf(n))
		return nil
	}
	fields := map[string]*yaml.Node{}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		name := shown(key)
		switch line, twice := lines[name]; {
		case !slices.Contains(names, name):
			hint := ""
			if near := nearest(name, names); near != "" {
				hint = "; did you mean " + near + "?"
			}
			p.fail(key, "unknown field %q: %s has %s%s", name, what, strings.Join(names, ", "), hint)
			continue
		case twice:
			p.fail(key, "%s is there twice, first in line %d", name, line)
			continue
		case value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null" && name != "value":
			p.fail(key, "%s has no value", name)
		default:
			fields[name] = value
		}
		lines[name] = key.Line
	}
	// A field that is there but wrong is not missing as well.
	for name := range lines {
		if fields[name] == nil {
			fields[name] = broken
		}
	}
	return fields
}

// broken stands for a value that was reported already.
var broken = &yaml.Node{}

func (p *parser) sequence(n *yaml.Node, what string) []*yaml.Node {
	if n = resolve(n); n.Kind != yaml.SequenceNode {
		p.fail(n, "%s is a list, but here is %s", what, kindOf(n))
		return nil
	}
	all := make([]*yaml.Node, 0, len(n.Content))
	for _, entry := range n.Content {
		all = append(all, resolve(entry))
	}
	return all
}

// text returns a scalar that is not empty. A node that is nil or broken is an empty text.
func (p *parser) text(n *yaml.Node, what string) string {
	if n == nil || n == broken {
		return ""
	}
	n = resolve(n)
	if n.Kind != yaml.ScalarNode {
		p.fail(n, "%s is a text, but here is %s", what, kindOf(n))
		return ""
	}
	if strings.TrimSpace(n.Value) == "" {
		p.fail(n, "%s is empty", what)
		return ""
	}
	return n.Value
}

// oneOf returns a text that is among some.
func (p *parser) oneOf(n *yaml.Node, what string, allowed []string) string {
	text := p.text(n, what)
	if text == "" || slices.Contains(allowed, text) {
		return text
	}
	p.fail(n, "%s", unknown(what, shown(n), text, allowed))
	return ""
}

// unknown says that a text is not allowed, and what is.
func unknown(what, shown, text string, allowed []string) string {
	hint := ""
	if near := nearest(text, allowed); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return fmt.Sprintf("there is no %s %q: use one of %s%s", what, shown, strings.Join(allowed, ", "), hint)
}

func (p *parser) duration(n *yaml.Node, what string) time.Duration {
	text := p.text(n, what)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		p.fail(n, "%s is a duration such as 500ms, 30s or 2m, not %q", what, shown(n))
		return 0
	}
	return d
}

// oldBooleans are what kubectl takes for booleans beside true and false.
var oldBooleans = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

// value returns a node as unstructured objects hold it, and as kubectl reads it.
func (p *parser) value(n *yaml.Node, depth int) any {
	if n == broken {
		return nil
	}
	position := n
	n = resolve(n)
	if p.values++; p.values > mostValues || depth > mostDepth {
		if p.values <= mostValues || p.values == mostValues+1 {
			p.fail(position, "the objects are too large or too deep")
		}
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return p.fieldsOf(n, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, entry := range n.Content {
			list = append(list, p.value(entry, depth+1))
		}
		return list
	default:
		return p.scalar(n)
	}
}

func (p *parser) fieldsOf(n *yaml.Node, depth int) map[string]any {
	fields := map[string]any{}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		switch line, twice := lines[key.Value]; {
		case key.ShortTag() == "!!merge":
			p.fail(key, "merge keys (<<) are not supported: write the fields out")
		case key.Kind != yaml.ScalarNode:
			p.fail(n.Content[i], "a field has a name, but here is %s", kindOf(key))
		case twice:
			p.fail(key, "%s is there twice, first in line %d", shown(key), line)
		default:
			lines[key.Value] = key.Line
			fields[key.Value] = p.value(n.Content[i+1], depth+1)
		}
	}
	return fields
}

func (p *parser) scalar(n *yaml.Node) any {
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		value, err := strconv.ParseBool(strings.ToLower(n.Value))
		if err != nil {
			p.fail(n, "%q is not a boolean", shown(n))
		}
		return value
	case "!!int":
		if value, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return value
		}
		p.fail(n, "%q does not fit into 64 bits", shown(n))
		return nil
	case "!!float":
		value, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			p.fail(n, "%q is not a number that JSON has", shown(n))
			return nil
		}
		return value
	}
	if value, old := oldBooleans[n.Value]; old && plain {
		return value
	}
	return n.Value
}

// nearest returns the name that is most like a text, if any is.
func nearest(text string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		if d := distance(strings.ToLower(text), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters to add, remove or replace.
func distance(a, b string) int {
	if len(a) > 40 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
