// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-tools/pkg/rbac"

	"github.com/opdock/opdock/internal/gomodule"
)

// markerName is how markers for rights begin.
const markerName = "+kubebuilder:rbac:"

// Marker is an RBAC marker in source code.
type Marker struct {
	// File is relative to the project, with slashes, and Line counts from 1.
	File string
	Line int
	rbac.Rule
	// Problem is the reason why the marker cannot be parsed; it is then not changed.
	Problem error

	// within is the namespace where it holds, if that is not the one that it names.
	within string
	lead   string // the text before the plus sign
	line   string // the whole line, without its end
}

// Place is where the marker is.
func (m *Marker) Place() string { return fmt.Sprintf("%s:%d", m.File, m.Line) }

// ReadMarkers returns the markers in a Go module, in the order of files and lines. Tests and modules below it have none that
// count.
func ReadMarkers(dir string) (markers []Marker, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir && isLeftOut(path, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go"):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		found, err := markersIn(filepath.ToSlash(name), content)
		markers = append(markers, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the markers: %w", err)
	}
	return markers, nil
}

// isLeftOut is true for folders that the go command does not take for packages of the module.
func isLeftOut(path, name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || slices.Contains([]string{"vendor", "testdata", "node_modules"}, name) {
		return true
	}
	_, err := os.Stat(filepath.Join(path, gomodule.File))
	return err == nil
}

// markersIn finds the markers of a file, which are comments: text that looks like one in a string is none.
func markersIn(name string, content []byte) (markers []Marker, err error) {
	if !bytes.Contains(content, []byte(markerName)) {
		return nil, nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(content, []byte("\n"))
	for _, group := range file.Comments {
		for _, comment := range group.List {
			text, isLine := strings.CutPrefix(comment.Text, "//")
			text = strings.TrimSpace(text)
			if !isLine || !strings.HasPrefix(text, markerName) {
				continue
			}
			at := files.PositionFor(comment.Slash, false)
			marker := Marker{File: name, Line: at.Line}
			marker.line = withoutEnd(lines[at.Line-1])
			marker.lead, _, _ = strings.Cut(marker.line, markerName)
			if strings.TrimSpace(marker.lead) != "//" {
				marker.Problem = errors.New("it follows other text in its line")
			}
			value, err := rbac.RuleDefinition.Parse(text)
			if err != nil {
				marker.Problem = err
			} else if rule, ok := value.(rbac.Rule); ok {
				marker.Rule = rule
			}
			for i, group := range marker.Groups {
				if group == "core" {
					marker.Groups[i] = "" // as controller-gen has it
				}
			}
			markers = append(markers, marker)
		}
	}
	return markers, nil
}

// withoutEnd is a line without the characters that end it.
func withoutEnd(line []byte) string { return strings.TrimRight(string(line), "\r\n") }

// FromMarkers returns the rules of markers.
func FromMarkers(markers []Marker) Granted {
	granted := Granted{}
	for i := range markers {
		m := &markers[i]
		if m.Problem != nil {
			granted.Notes = append(granted.Notes, fmt.Sprintf("%s cannot be parsed and is not changed: %v", m.Place(), m.Problem))
			continue
		}
		granted.Rules = append(granted.Rules, m.granted())
	}
	if len(granted.Rules) > 0 {
		granted.Source = "markers in the source code"
	}
	return granted
}

func (m *Marker) granted() Rule {
	return Rule{PolicyRule: m.ToRule(), Namespace: m.namespace(), From: m.Place()}
}

// namespace is where the marker holds; empty for the whole cluster.
func (m *Marker) namespace() string { return cmp.Or(m.within, m.Namespace) }

// MarkerLines returns the markers for roles, without the text before the plus sign.
func MarkerLines(roles []Role) (lines []string) {
	for _, role := range roles {
		for _, rule := range role.Rules {
			lines = append(lines, formatMarker(rule, role.Namespace, ""))
		}
	}
	return lines
}

func formatMarker(rule rbacv1.PolicyRule, namespace, roleName string) string {
	var fields []string
	add := func(name string, values ...string) {
		if len(values) > 0 && (values[0] != "" || name == "groups") {
			fields = append(fields, name+"="+markerValue(values))
		}
	}
	add("groups", rule.APIGroups...)
	add("resources", rule.Resources...)
	add("resourceNames", rule.ResourceNames...)
	add("urls", rule.NonResourceURLs...)
	add("verbs", slices.SortedFunc(slices.Values(rule.Verbs), compareVerbs)...)
	add("namespace", namespace)
	add("roleName", roleName)
	return markerName + strings.Join(fields, ",")
}

// numberWithin finds where controller-gen would begin to read a number, which need not end as one.
var numberWithin = regexp.MustCompile(`(^|[^A-Za-z0-9_])[0-9]`)

// markerValue returns a list in the syntax of a marker, quoted where necessary. A colon is a separator for older versions of
// controller-gen.
func markerValue(values []string) string {
	quoted := make([]string, 0, len(values))
	for _, value := range values {
		if value == "" || strings.ContainsAny(value, `,;:={}"`+"` ") || numberWithin.MatchString(value) {
			value = fmt.Sprintf("%q", value)
		}
		quoted = append(quoted, value)
	}
	return strings.Join(quoted, ";")
}
