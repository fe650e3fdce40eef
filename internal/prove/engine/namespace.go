// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An operator that watches only some namespaces does not see samples in others. Those that name no namespace go where it looks, as
// with opdock dev.

// elsewhereError is an operator that does not watch the namespace of the scenario.
type elsewhereError struct{ watched []string }

func (e *elsewhereError) Error() string {
	return "the operator watches only " + strings.Join(e.watched, ", ")
}

// isElsewhere reports whether the scenario has to move, because the operator watches only these namespaces.
func (c *campaign) isElsewhere(watched []string) bool {
	return c.o.Move != nil && c.moves < mostMoves && len(watched) > 0 && !slices.Contains(watched, c.o.Namespace)
}

// mostMoves is once because of the operator's environment, and once because of its log, which says more.
const mostMoves = 2

// follow moves the scenario to a namespace that the operator watches.
func (c *campaign) follow(watched []string) {
	if !c.isElsewhere(watched) {
		return
	}
	c.moves++
	if say := c.o.Operator.Say; say != nil {
		say(fmt.Sprintf("the operator watches only %s; objects that set no namespace are applied to %s", strings.Join(watched, ", "), watched[0]))
	}
	c.o.Move(watched[0])
	c.o.Namespace = watched[0]
}

// whereWatched does something, and again with the scenario in a namespace that the operator watches if that is another
// one. Only the log of the first run may say which. What comes later uses the same namespace.
func (c *campaign) whereWatched(do, prepare func() error) error {
	for {
		c.mayMove = true
		err := do()
		c.mayMove = false
		var elsewhere *elsewhereError
		if !errors.As(err, &elsewhere) {
			return err
		}
		c.follow(elsewhere.watched)
		if err := prepare(); err != nil {
			return err
		}
	}
}
