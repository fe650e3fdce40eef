// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import "strings"

// Action is what the user wants.
type Action int

// What a user can want. Unfold shows all of the tree, through which one can then move, or folds it again; moving through
// a folded tree unfolds it.
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

// keys are what terminals send, longer sequences before those that they begin with.
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
	{"q", Quit}, {"Q", Quit}, {"\x03", Quit}, {"\x04", Quit}, // also Ctrl-C and Ctrl-D, which a raw terminal does not act upon
}

// Actions are what the user means by what was typed, which may be several keys at once. Keys without a meaning are
// skipped.
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

// skip drops one key; of an escape sequence that is not known, all of it, so that its letters do not count as keys.
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

// Do does what the user wants, as far as it is about the view.
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
	v.offset = max(to, 0) // Lines knows where the end is
}
