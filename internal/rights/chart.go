// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Chart is a Helm chart of a project.
type Chart struct {
	// Dir is relative to the project, with slashes.
	Dir string
	Granted
}

// ReadCharts returns the charts of a project, and the rules that their templates bind. Rules in a namespace hold in
// the one that is given, which is where the chart is taken to be installed.
func ReadCharts(dir, namespace string) (charts []Chart, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir && isLeftOut(path, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || entry.Name() != "Chart.yaml":
			return nil
		}
		folder := filepath.Dir(path)
		name, err := filepath.Rel(dir, folder)
		if err != nil {
			return err
		}
		chart := Chart{Dir: filepath.ToSlash(name)}
		if chart.Granted, err = readTemplates(folder, chart.Dir, namespace); err != nil {
			return err
		}
		charts = append(charts, chart)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the charts: %w", err)
	}
	return charts, nil
}

// template is one object of a template, as text.
type template struct {
	file       string
	line       int
	kind, name string
	text       []string
}

func readTemplates(folder, chart, namespace string) (Granted, error) {
	var parts []template
	defined := map[string][]string{}
	err := filepath.WalkDir(filepath.Join(folder, "templates"), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a chart without templates
		}
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".tpl"}, filepath.Ext(path)) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		maps.Copy(defined, definitions(string(content)))
		if filepath.Ext(path) == ".tpl" {
			return nil
		}
		name, err := filepath.Rel(folder, path)
		parts = append(parts, split(chart+"/"+filepath.ToSlash(name), content)...)
		return err
	})
	if err != nil {
		return Granted{}, err
	}
	granted := grantedBy(parts, defined, namespace)
	if len(granted.Rules) > 0 {
		granted.Source = "chart " + chart
	}
	return granted, nil
}

var (
	separator = regexp.MustCompile(`^---\s*(#.*)?$`)
	kindLine  = regexp.MustCompile(`^kind:\s*(\w+)\s*$`)
	nameLine  = regexp.MustCompile(`^\s+name:\s*(.*?)\s*$`)
	// condition is a line that only says whether others are there.
	condition = regexp.MustCompile(`^\s*\{\{-?\s*(if|else|end|with)\b[^{}]*-?\}\}\s*$`)
)

// split takes the text of a template apart into objects.
func split(file string, content []byte) (parts []template) {
	current := template{file: file, line: 1}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text := strings.TrimRight(string(line), "\r\n")
		if separator.MatchString(text) {
			parts = append(parts, current)
			current = template{file: file, line: number + 1}
			continue
		}
		current.text = append(current.text, text)
	}
	parts = append(parts, current)
	for i := range parts {
		parts[i].kind = parts[i].find("", kindLine)
		parts[i].name = parts[i].find("metadata:", nameLine)
	}
	return slices.DeleteFunc(parts, func(t template) bool {
		return !slices.Contains([]string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}, t.kind)
	})
}

// find looks for a line below one at the left margin, or anywhere.
func (t *template) find(below string, line *regexp.Regexp) string {
	inside := below == ""
	for _, text := range t.text {
		if below != "" && text != "" && text[0] != ' ' {
			inside = strings.HasPrefix(text, below)
		}
		if match := line.FindStringSubmatch(text); inside && match != nil {
			return match[1]
		}
	}
	return ""
}

// grantedBy are the rules of roles that a binding refers to. Both names are templates as well, so they are compared as text.
func grantedBy(parts []template, defined map[string][]string, namespace string) (granted Granted) {
	for i := range parts {
		binding := &parts[i]
		within := ""
		switch binding.kind {
		case "RoleBinding":
			within = namespace
		case "ClusterRoleBinding":
		default:
			continue
		}
		kind := binding.find("roleRef:", regexp.MustCompile(`^\s+kind:\s*(\w+)`))
		name := binding.find("roleRef:", nameLine)
		at := slices.IndexFunc(parts, func(t template) bool { return t.kind == kind && t.name == name })
		if at < 0 {
			granted.Notes = append(granted.Notes, fmt.Sprintf("%s:%d refers to %s %s, which no template of the chart defines by this name: its rules are not known", binding.file, binding.line, kind, name))
			continue
		}
		rules, conditional, unread, err := parts[at].rules(defined)
		if err != nil {
			granted.Notes = append(granted.Notes, err.Error())
			continue
		}
		if unread != "" {
			granted.Notes = append(granted.Notes, unread)
		}
		from := fmt.Sprintf("%s:%d", parts[at].file, parts[at].line)
		if conditional {
			granted.Notes = append(granted.Notes, from+" has rules that depend on values: all of them count as granted")
		}
		for _, rule := range rules {
			granted.Rules = append(granted.Rules, Rule{PolicyRule: rule, Namespace: within, From: from})
		}
	}
	return granted
}

// rules reads the rules of a role, which are plain YAML in most charts even where the rest is not. What is left out is unread.
func (t *template) rules(defined map[string][]string) (rules []rbacv1.PolicyRule, conditional bool, unread string, err error) {
	var block []string
	inside, begin := false, 0
	add := func(at int, lines []string) {
		for _, text := range lines {
			switch {
			case condition.MatchString(text):
				// An end may as well end what has begun before the rules.
				conditional = conditional || condition.FindStringSubmatch(text)[1] != "end"
			case strings.Contains(text, "{{"):
				unread = fmt.Sprintf("%s:%d generates rules from a template, which cannot be read without Helm", t.file, at)
			default:
				block = append(block, text)
			}
		}
	}
	for i, text := range t.text {
		switch {
		case strings.HasPrefix(text, "rules:"):
			inside, begin = true, t.line+i
			block = append(block, text)
		case inside && text != "" && !strings.ContainsRune(" -#{", rune(text[0])):
			inside = false
		case inside:
			add(t.line+i, included([]string{text}, defined, 0))
		}
	}
	if begin == 0 {
		return nil, false, "", fmt.Errorf("%s:%d has no rules that can be read without Helm", t.file, t.line)
	}
	var parsed struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	if err := yaml.Unmarshal([]byte(strings.Join(block, "\n")), &parsed); err != nil {
		return nil, false, "", fmt.Errorf("%s:%d: %w", t.file, begin, err)
	}
	return parsed.Rules, conditional, unread, nil
}
