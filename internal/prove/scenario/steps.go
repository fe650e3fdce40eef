// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// actions are the fields of a step of which it has exactly one.
var actions = []string{"apply", "patch", "scale", "delete", "wait"}

func (p *parser) steps(n *yaml.Node, s *Scenario) {
	entries := p.sequence(n, "steps")
	if n.Kind == yaml.SequenceNode && len(entries) == 0 {
		p.fail(n, "a scenario needs at least one step")
	}
	names := map[string]int{}
	applied := false
	for _, entry := range entries {
		step := p.step(entry)
		if line, twice := names[step.Name]; twice && step.Name != "" {
			p.fail(entry, "the step in line %d has the same name: %q", line, step.Name)
		}
		names[step.Name] = entry.Line
		if step.Delete != nil && step.Delete.All && !applied {
			p.fail(entry, "delete: {all: true} deletes what steps before it applied, but there is none")
		}
		applied = applied || step.Apply != nil
		s.Steps = append(s.Steps, step)
	}
}

func (p *parser) step(n *yaml.Node) Step {
	step := Step{Line: n.Line}
	fields := p.mapping(n, "a step", append([]string{"name"}, actions...)...)
	if fields == nil {
		return step
	}
	if step.Name = p.text(fields["name"], "name"); fields["name"] == nil {
		p.fail(n, "a step needs a name")
	}
	var set []string
	for _, action := range actions {
		if fields[action] != nil {
			set = append(set, action)
		}
	}
	slices.SortStableFunc(set, func(a, b string) int {
		return cmp.Or(cmp.Compare(fields[a].Line, fields[b].Line), cmp.Compare(fields[a].Column, fields[b].Column))
	})
	switch len(set) {
	case 0:
		p.fail(n, "a step needs one of %s", strings.Join(actions, ", "))
	case 1:
	default:
		p.fail(fields[set[1]], "a step does one thing, but this one has %s: make each a step", strings.Join(set, " and "))
	}
	if apply := fields["apply"]; apply != nil {
		step.Apply = p.apply(apply)
	}
	if patch := fields["patch"]; patch != nil {
		step.Patch = p.patches(patch)
	}
	if scale := fields["scale"]; scale != nil {
		step.Scale = p.scale(scale)
	}
	if remove := fields["delete"]; remove != nil {
		step.Delete = p.remove(remove)
	}
	if wait := fields["wait"]; wait != nil {
		step.Wait = p.wait(wait)
	}
	return step
}

// apply reads an object, the path of a file, or a list of both.
func (p *parser) apply(n *yaml.Node) *Apply {
	entries := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		entries = p.sequence(n, "apply")
		if len(entries) == 0 {
			p.fail(n, "apply needs at least one object")
		}
	}
	apply := &Apply{}
	for _, entry := range entries {
		var found []*unstructured.Unstructured
		switch entry.Kind {
		case yaml.ScalarNode:
			if p.text(entry, "apply") != "" {
				found = p.objectsOf(entry)
			}
		case yaml.MappingNode:
			found = p.object(entry)
		default:
			p.fail(entry, "apply takes an object, the path of a file, or a list of both")
		}
		apply.Objects = append(apply.Objects, found...)
	}
	return apply
}

// object reads an object. A List is what it lists.
func (p *parser) object(n *yaml.Node) []*unstructured.Unstructured {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		p.fail(n, "an object begins with apiVersion and kind, but here is %s", kindOf(n))
		return nil
	}
	before := len(p.problems)
	value, _ := p.value(n, 0).(map[string]any)
	if len(p.problems) > before {
		return nil
	}
	for _, name := range []string{"apiVersion", "kind"} {
		if text, _ := value[name].(string); text == "" {
			p.fail(n, "an object needs %s", name)
			return nil
		}
	}
	object := &unstructured.Unstructured{Object: value}
	if items, found := fieldOf(n, "items"); found && strings.HasSuffix(object.GetKind(), "List") {
		var all []*unstructured.Unstructured
		for _, item := range p.sequence(items, "items") {
			all = append(all, p.object(item)...)
		}
		return all
	}
	metadata, found := fieldOf(n, "metadata")
	if !found || resolve(metadata).Kind != yaml.MappingNode {
		p.fail(n, "an object needs metadata.name")
		return nil
	}
	if object.GetName() == "" {
		p.fail(metadata, "an object needs metadata.name: a generated one differs in each run")
		return nil
	}
	return []*unstructured.Unstructured{object}
}

var refFields = []string{"apiVersion", "kind", "name", "namespace"}

// ref reads which object is meant.
func (p *parser) ref(n *yaml.Node, fields map[string]*yaml.Node, what string) Ref {
	for _, name := range []string{"kind", "name"} {
		if fields[name] == nil {
			p.fail(n, "%s needs %s", what, name)
		}
	}
	return Ref{
		APIVersion: p.text(fields["apiVersion"], "apiVersion"), Kind: p.text(fields["kind"], "kind"),
		Namespace: p.text(fields["namespace"], "namespace"), Name: p.text(fields["name"], "name"),
	}
}

func (p *parser) patches(n *yaml.Node) []Patch {
	if n.Kind != yaml.SequenceNode {
		return []Patch{p.patch(n)}
	}
	var all []Patch
	for _, entry := range p.sequence(n, "patch") {
		all = append(all, p.patch(entry))
	}
	if len(all) == 0 {
		p.fail(n, "patch needs at least one object")
	}
	return all
}

func (p *parser) patch(n *yaml.Node) Patch {
	fields := p.mapping(n, "patch", append(refFields, "merge", "json")...)
	if fields == nil {
		return Patch{}
	}
	patch := Patch{Ref: p.ref(n, fields, "patch")}
	merge, operations := fields["merge"], fields["json"]
	switch {
	case merge != nil && operations != nil:
		p.fail(operations, "patch takes merge or json, not both")
	case merge == nil && operations == nil:
		p.fail(n, "patch needs merge (the fields to change) or json (a list of operations)")
	case merge != nil:
		if resolve(merge).Kind != yaml.MappingNode {
			p.fail(merge, "merge holds the fields to change, but here is %s", kindOf(merge))
			break
		}
		patch.Merge, _ = p.value(merge, 0).(map[string]any)
	default:
		for _, entry := range p.sequence(operations, "json") {
			patch.JSON = append(patch.JSON, p.operation(entry))
		}
		if len(patch.JSON) == 0 {
			p.fail(operations, "json needs at least one operation")
		}
	}
	return patch
}

func (p *parser) operation(n *yaml.Node) Operation {
	fields := p.mapping(n, "an operation of json", "op", "path", "value", "from")
	if fields == nil {
		return Operation{}
	}
	o := Operation{Op: p.oneOf(fields["op"], "op", []string{"add", "remove", "replace", "move", "copy", "test"})}
	pointer := func(name string) string {
		text := p.text(fields[name], name)
		if text != "" && !strings.HasPrefix(text, "/") {
			p.fail(fields[name], "%s is a JSON pointer and begins with /, such as /spec/replicas", name)
		}
		return text
	}
	o.Path, o.From = pointer("path"), pointer("from")
	if value := fields["value"]; value != nil {
		o.Value = p.value(value, 0)
	}
	need := []string{"op", "path"}
	switch o.Op {
	case "add", "replace", "test":
		need = append(need, "value")
	case "move", "copy":
		need = append(need, "from")
	}
	for _, name := range need {
		if fields[name] == nil {
			p.fail(n, "an operation of json needs %s", name)
		}
	}
	return o
}

func (p *parser) scale(n *yaml.Node) *Scale {
	fields := p.mapping(n, "scale", append(refFields, "replicas")...)
	if fields == nil {
		return &Scale{}
	}
	scale := &Scale{Ref: p.ref(n, fields, "scale")}
	replicas := fields["replicas"]
	if replicas == nil {
		p.fail(n, "scale needs replicas")
		return scale
	}
	number, ok := p.value(replicas, 0).(int64)
	if !ok || number < 0 || number > math.MaxInt32 {
		p.fail(replicas, "replicas is a number from 0 to %d, not %q", math.MaxInt32, shown(replicas))
		return scale
	}
	scale.Replicas = int32(number)
	return scale
}

// remove reads {kind, name}, Kind/name or {all: true}.
func (p *parser) remove(n *yaml.Node) *Delete {
	if n.Kind == yaml.ScalarNode {
		kind, name, ok := strings.Cut(p.text(n, "delete"), "/")
		if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
			p.fail(n, "delete takes Kind/name, kind and name, or all: true, not %q", shown(n))
		}
		return &Delete{Ref: Ref{Kind: kind, Name: name}}
	}
	fields := p.mapping(n, "delete", append(refFields, "all")...)
	if fields == nil {
		return &Delete{}
	}
	all := fields["all"]
	if all == nil {
		return &Delete{Ref: p.ref(n, fields, "delete")}
	}
	if value, ok := p.value(all, 0).(bool); !ok || !value {
		p.fail(all, "all is true or absent, not %q", shown(all))
	}
	for _, name := range refFields {
		if fields[name] != nil {
			p.fail(fields[name], "delete takes an object or all: true, not both")
			break
		}
	}
	return &Delete{All: true}
}

func (p *parser) wait(n *yaml.Node) *Wait {
	fields := p.mapping(n, "wait", append(refFields, "for", "timeout")...)
	if fields == nil {
		return &Wait{}
	}
	wait := &Wait{Ref: p.ref(n, fields, "wait"), Timeout: p.duration(fields["timeout"], "timeout")}
	condition := fields["for"]
	if condition == nil {
		p.fail(n, "wait needs for, such as for: Ready=True")
		return wait
	}
	var ok bool
	wait.Condition, wait.Status, ok = strings.Cut(p.text(condition, "for"), "=")
	if !ok || wait.Condition == "" || wait.Status != "True" && wait.Status != "False" && wait.Status != "Unknown" {
		p.fail(condition, "for is Condition=Status, where the status is True, False or Unknown, such as Ready=True; not %q", shown(condition))
	}
	return wait
}
