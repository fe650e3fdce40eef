// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// Problem is something in the source that prevents a generator from working.
type Problem struct {
	// File is relative to the module's folder if it is inside. It is empty if the position is unknown.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Generator is empty if it concerns all of them.
	Generator string `json:"generator,omitempty"`
	Message   string `json:"message"`
}

// String is the problem on one line, as compilers write it, which editors can jump to.
func (p Problem) String() string {
	var text strings.Builder
	if p.File != "" {
		text.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&text, ":%d:%d", p.Line, max(p.Column, 1))
		}
		text.WriteString(": ")
	}
	if p.Generator != "" {
		text.WriteString(p.Generator + ": ")
	}
	text.WriteString(p.Message)
	return text.String()
}

// Error is returned by Run if the source is to blame.
type Error struct {
	Problems []Problem `json:"problems"`
}

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// problems collects problems, in the order of the source and each once.
type problems struct {
	module module
	list   []Problem
}

func (p *problems) add(problem Problem) {
	problem.File = p.module.relative(problem.File)
	problem.Message = strings.TrimSpace(problem.Message)
	if !slices.Contains(p.list, problem) {
		p.list = append(p.list, problem)
	}
}

func (p *problems) addAt(position token.Position, generator, message string) {
	p.add(Problem{File: position.Filename, Line: position.Line, Column: position.Column, Generator: generator, Message: message})
}

// err is nil if nothing is wrong.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{Problems: p.list}
}

// splitPosition splits the file:line:column of go list and go/packages; missing parts are zero.
func splitPosition(text string) (position token.Position) {
	if text == "" || text == "-" {
		return position
	}
	parts := strings.Split(text, ":")
	var numbers []int
	for len(parts) > 1 && len(numbers) < 2 {
		number, err := strconv.Atoi(parts[len(parts)-1])
		if err != nil {
			break
		}
		numbers = append([]int{number}, numbers...)
		parts = parts[:len(parts)-1]
	}
	position.Filename = strings.Join(parts, ":")
	if len(numbers) > 0 {
		position.Line = numbers[0]
	}
	if len(numbers) > 1 {
		position.Column = numbers[1]
	}
	return position
}
