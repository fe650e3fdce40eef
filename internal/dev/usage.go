// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// usage is how the operator is called.
type usage struct {
	flags flagSet
	// command is the subcommand that runs the operator, if it has several, and arguments are the user's without it.
	command, arguments []string
	// commands are the subcommands that the help lists, if none was selected.
	commands []string
}

// askUsage reads the flags of the operator, and of its subcommand if it has some. The user selects it, or else the Deployment.
func askUsage(ctx context.Context, binary, dir string, env, deployed, user []string) (usage, error) {
	u := usage{arguments: user}
	ask := func(command ...string) (string, error) { return askHelp(ctx, binary, dir, env, command...) }
	help, err := ask()
	if err != nil {
		return u, err
	}
	given := leadingWords(user)
	switch {
	case len(given) == 0:
		help, err = u.selectDeployed(help, leadingWords(deployed), ask)
	case listsCommand(help, given[0]):
		u.command, u.arguments = given, user[len(given):]
		help, err = ask(given...)
	}
	if err != nil {
		return u, err
	}
	u.flags = parseFlags(help)
	return u, nil
}

// selectDeployed selects the subcommand that the Deployment selects, and returns its help. The Deployment may pass other words after
// it, such as paths in its container.
func (u *usage) selectDeployed(help string, words []string, ask func(...string) (string, error)) (string, error) {
	for i, word := range words {
		if !listsCommand(help, word) {
			break
		}
		u.command = words[:i+1]
		var err error
		if help, err = ask(u.command...); err != nil {
			return "", err
		}
	}
	if len(u.command) == 0 {
		u.commands = commandsIn(help)
	}
	return help, nil
}

// commandLine is a line of a list of subcommands.
var commandLine = regexp.MustCompile(`^\s+([a-z][\w-]*)(?:,\s*\w+)*(?:\s\s+\S.*)?$`)

// commandsIn returns the subcommands that a help text lists, without those that every program has.
func commandsIn(help string) (names []string) {
	heading := commandList.FindStringIndex(help)
	if heading == nil {
		return nil
	}
	for line := range strings.Lines(strings.TrimLeft(help[heading[1]:], "\r\n")) {
		match := commandLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if match == nil {
			break // the end of the list
		}
		if !slices.Contains([]string{"completion", "help", "version"}, match[1]) {
			names = append(names, match[1])
		}
	}
	return names
}

// hint says what to pass to an operator that exits because it was given no subcommand; empty if it has none.
func (u usage) hint() string {
	if len(u.commands) == 0 {
		return ""
	}
	return fmt.Sprintf("the operator has %s (%s), and no Deployment in the manifests selects one: opdock dev -- %s",
		plural(len(u.commands), "subcommand", "subcommands"), strings.Join(u.commands, ", "), u.commands[0])
}

// plan returns the operator's command line.
func (u usage) plan(s surroundings) plan {
	p := newPlan(u.flags, s, u.arguments)
	p.args = append(append([]string{}, u.command...), p.args...)
	return p
}

// leadingWords returns the arguments before the first flag.
func leadingWords(arguments []string) []string {
	for i, one := range arguments {
		if strings.HasPrefix(one, "-") {
			return arguments[:i]
		}
	}
	return arguments
}

// commandList is the heading of subcommands in a help text.
var commandList = regexp.MustCompile(`(?im)^(available )?(sub)?commands:\s*$`)

// listsCommand reports whether a help text lists a subcommand.
func listsCommand(help, name string) bool {
	heading := commandList.FindStringIndex(help)
	return heading != nil && regexp.MustCompile(`(?m)^\s+`+regexp.QuoteMeta(name)+`(,\s*\w+)*(\s\s+\S|\s*$)`).MatchString(help[heading[1]:])
}

// argumentsIn returns the arguments of the operator's container in the manifests.
func argumentsIn(manifests []*unstructured.Unstructured) []string {
	c, found := containerIn(manifests, nil)
	if !found {
		return nil
	}
	command, _, _ := unstructured.NestedStringSlice(c.fields, "command")
	arguments, _, _ := unstructured.NestedStringSlice(c.fields, "args")
	return append(command[min(1, len(command)):len(command):len(command)], arguments...)
}
