// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"os"
	"path"
	"regexp"
	"strings"
)

// rule is the first line of a rule in a Makefile whose target has a name that can be typed.
var rule = regexp.MustCompile(`^([\w./-]+) *:(?:[^=]|$)`)

// makeTarget returns the target of the project's Makefile that writes a file; empty if none can be seen to.
func (p *Project) makeTarget(file string) string {
	dir, name := path.Split(file)
	quoted := func(text string) string { return `["']?(?:\./)?` + regexp.QuoteMeta(text) + `["']?(?:$|[\s;&|)])` }
	// A copy or a redirection ends with the file that it writes.
	const writes = `(?:\b(?:cp|mv|ln|touch|tee)\s(?:[^;&|]*\s)?|>\s*)`
	directly := regexp.MustCompile(writes + quoted(file))
	inFolder := regexp.MustCompile(`\bcd\s+` + quoted(strings.TrimSuffix(dir, "/")) + `.*` + writes + quoted(name))
	target := ""
	for line := range strings.Lines(strings.ReplaceAll(p.makefile(), "\\\n", " ")) {
		recipe, isRecipe := strings.CutPrefix(line, "\t")
		switch match := rule.FindStringSubmatch(line); {
		case isRecipe && target != "" && (directly.MatchString(recipe) || dir != "" && inFolder.MatchString(recipe)):
			return target
		case match != nil && match[1] == file:
			return file
		case match != nil:
			target = match[1]
		}
	}
	return ""
}

// makefile returns the content of the project's Makefile, under the names that make looks for.
func (p *Project) makefile() string {
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} {
		if content, err := os.ReadFile(p.path(name)); err == nil {
			return string(content)
		}
	}
	return ""
}
