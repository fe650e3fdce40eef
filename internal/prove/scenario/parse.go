// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/report"
)

// Load reads a scenario from a file. Files that its steps apply are found relative to it.
func Load(file string) (*Scenario, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	return Parse(file, data, os.ReadFile)
}

// Parse reads a scenario. It calls read for each file that a step applies. Its error joins one [MistakeError] for each
// mistake, in the order of the file.
func Parse(file string, data []byte, read func(string) ([]byte, error)) (*Scenario, error) {
	p := &parser{file: file, read: read}
	documents := p.documents(data)
	s := &Scenario{File: file}
	switch {
	case len(p.problems) > 0:
	case len(documents) == 0:
		p.at(1, 1, "the scenario is empty: it needs apiVersion: %s, kind: %s and steps", APIVersion, Kind)
	case len(documents) > 1:
		p.fail(documents[1], "a file holds one scenario, but a second document begins here")
	default:
		p.scenario(documents[0], s)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return s, nil
}

// parser collects mistakes. Its methods return zero values for what is wrong, and go on.
type parser struct {
	file     string // the one being read
	read     func(string) ([]byte, error)
	problems []*MistakeError
	values   int // converted so far
}

// mostProblems is how many mistakes are reported at once.
const mostProblems = 20

func (p *parser) at(line, column int, format string, arguments ...any) {
	p.problems = append(p.problems, &MistakeError{File: p.file, Line: max(line, 1), Column: max(column, 1), Text: fmt.Sprintf(format, arguments...)})
}

// fail reports a mistake in a node, unless it was reported already.
func (p *parser) fail(n *yaml.Node, format string, arguments ...any) {
	if n == broken {
		return
	}
	p.at(n.Line, n.Column, format, arguments...)
}

func (p *parser) err() error {
	slices.SortStableFunc(p.problems, func(a, b *MistakeError) int {
		if a.File != b.File {
			return 0
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var all []error
	for _, problem := range p.problems[:min(len(p.problems), mostProblems)] {
		all = append(all, problem)
	}
	if more := len(p.problems) - mostProblems; more > 0 {
		all = append(all, fmt.Errorf("and %d more", more))
	}
	return errors.Join(all...)
}

// documents returns the documents of a file that are not empty.
func (p *parser) documents(data []byte) []*yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var all []*yaml.Node
	for {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			p.syntax(data, err)
			return nil
		}
		if len(document.Content) == 1 && document.Content[0].ShortTag() != "!!null" {
			all = append(all, document.Content[0])
		}
	}
}

var syntaxError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// syntax reports an error of the YAML parser, which knows the line only: the column is where its text begins.
func (p *parser) syntax(data []byte, err error) {
	text, line := strings.ReplaceAll(err.Error(), "\n", " "), 1
	if found := syntaxError.FindStringSubmatch(text); found != nil {
		text = found[2]
		if n, err := strconv.Atoi(found[1]); err == nil {
			line = n
		}
	}
	column := 1
	if lines := strings.Split(string(data), "\n"); line <= len(lines) {
		column += len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " \t"))
	}
	p.at(line, column, "not YAML: %s", text)
}

func (p *parser) scenario(n *yaml.Node, s *Scenario) {
	fields := p.mapping(n, "a scenario", "apiVersion", "kind", "metadata", "steps", "ignore", "settle")
	if fields == nil {
		return
	}
	p.constant(n, fields, "apiVersion", APIVersion)
	p.constant(n, fields, "kind", Kind)
	if metadata := fields["metadata"]; metadata != nil {
		p.mapping(metadata, "metadata", "name", "labels", "annotations")
	}
	steps := fields["steps"]
	if steps == nil {
		p.fail(n, "a scenario needs steps")
	} else {
		p.steps(steps, s)
	}
	if ignore := fields["ignore"]; ignore != nil {
		for _, entry := range p.sequence(ignore, "ignore") {
			s.Ignore = append(s.Ignore, p.ignore(entry))
		}
	}
	if settle := fields["settle"]; settle != nil {
		s.Settle = p.settle(settle)
	}
}

// constant checks a field that has one possible value.
func (p *parser) constant(n *yaml.Node, fields map[string]*yaml.Node, name, want string) {
	switch value := fields[name]; {
	case value == nil:
		p.fail(n, "%s is missing: write %s: %s", name, name, want)
	case value.Value != want:
		p.fail(value, "%s must be %s, not %q", name, want, shown(value))
	}
}

func (p *parser) ignore(n *yaml.Node) Ignore {
	fields := p.mapping(n, "an entry of ignore", "verdict", "family", "object", "field", "reason")
	if fields == nil {
		return Ignore{}
	}
	entry := Ignore{
		Verdict: p.oneOf(fields["verdict"], "verdict", report.Verdicts()), Family: p.oneOf(fields["family"], "family", report.Families()),
		Object: p.text(fields["object"], "object"), Field: p.text(fields["field"], "field"), Reason: p.text(fields["reason"], "reason"),
	}
	if fields["reason"] == nil {
		p.fail(n, needsReason)
	}
	if fields["verdict"] == nil && fields["family"] == nil && fields["object"] == nil && fields["field"] == nil {
		p.fail(n, ignoresAll)
	}
	return entry
}

func (p *parser) settle(n *yaml.Node) Settle {
	fields := p.mapping(n, "settle", "quiet", "patience", "bound")
	s := Settle{Quiet: p.duration(fields["quiet"], "quiet"), Patience: p.duration(fields["patience"], "patience"), Bound: p.duration(fields["bound"], "bound")}
	if s.Bound > 0 && s.Quiet >= s.Bound {
		p.fail(fields["quiet"], "quiet (%s) must be shorter than bound (%s)", s.Quiet, s.Bound)
	}
	if s.Bound > 0 && s.Patience >= s.Bound {
		p.fail(fields["patience"], "patience (%s) must be shorter than bound (%s)", s.Patience, s.Bound)
	}
	return s
}

// objectsOf reads the objects of a file that a step applies.
func (p *parser) objectsOf(n *yaml.Node) []*unstructured.Unstructured {
	path := filepath.FromSlash(n.Value)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(p.file), path)
	}
	data, err := p.read(path)
	if err != nil {
		p.fail(n, "cannot read the file to apply (its path is relative to the scenario): %v", err)
		return nil
	}
	other := &parser{file: path, read: p.read, values: p.values}
	var all []*unstructured.Unstructured
	for _, document := range other.documents(data) {
		all = append(all, other.object(document)...)
	}
	if len(all) == 0 && len(other.problems) == 0 {
		p.fail(n, "%s holds no objects", n.Value)
	}
	p.values = other.values
	p.problems = append(p.problems, other.problems...)
	return all
}
