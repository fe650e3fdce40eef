// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import "strings"

// Action is a command of the user.
type Action int

// The commands of the user. Unfold shows the whole tree, for scrolling, or folds it again. Scrolling in a folded tree
// unfolds it.
const (
	Quit Action = iota + 1
	Unfold
	Up
	Down
	PageUp
	PageDown
	Top
	Bottom
)

// keys are the sequences that terminals send. Longer sequences come before their prefixes.
var keys = []struct {
	input  string
	action Action
}{
	{"\x1b[A", Up}, {"\x1bOA", Up}, {"k", Up},
	{"\x1b[B", Down}, {"\x1bOB", Down}, {"j", Down},
	{"\x1b[5~", PageUp}, {"b", PageUp}, {"\x1b[6~", PageDown}, {"f", PageDown},
	{"\x1b[H", Top}, {"\x1bOH", Top}, {"\x1b[1~", Top}, {"g", Top},
	{"\x1b[F", Bottom}, {"\x1bOF", Bottom}, {"\x1b[4~", Bottom}, {"G", Bottom},
	{" ", Unfold}, {"\r", Unfold},
	{"q", Quit}, {"Q", Quit}, {"\x03", Quit}, {"\x04", Quit}, // Ctrl-C and Ctrl-D, too: a raw terminal sends no signals
}

// Actions returns the actions for the input, which may contain several keys. It skips unknown keys.
func Actions(input string) []Action {
	var actions []Action
next:
	for input != "" {
		for _, key := range keys {
			if rest, found := strings.CutPrefix(input, key.input); found {
				actions = append(actions, key.action)
				input = rest
				continue next
			}
		}
		input = skip(input)
	}
	return actions
}

// skip drops one key. It drops all of an unknown escape sequence, so its letters do not count as keys.
func skip(input string) string {
	if !strings.HasPrefix(input, "\x1b[") {
		return input[1:]
	}
	for i := 2; i < len(input); i++ {
		if input[i] >= '@' && input[i] <= '~' {
			return input[i+1:]
		}
	}
	return ""
}

// Do runs the actions that affect the view.
func (v *View) Do(action Action) {
	page := max(v.page-1, 1)
	switch action {
	case Unfold:
		v.unfolded = !v.unfolded
		v.offset = 0
	case Up:
		v.scroll(v.offset - 1)
	case Down:
		v.scroll(v.offset + 1)
	case PageUp:
		v.scroll(v.offset - page)
	case PageDown:
		v.scroll(v.offset + page)
	case Top:
		v.scroll(0)
	case Bottom:
		v.scroll(int(^uint(0) >> 1))
	}
}

func (v *View) scroll(to int) {
	if !v.unfolded {
		v.unfolded, to = true, 0
	}
	v.offset = max(to, 0) // Lines limits it at the end
}
