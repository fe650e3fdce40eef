// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"strings"

	"github.com/opdock/opdock/internal/instrument"
)

// marking is how the operator is built so that it marks its reconciles for the lens. The zero value is not at all.
type marking struct {
	// instrument makes such a build; nil for none.
	instrument *instrument.Project
	// instrumented is how that is done, nil if it cannot be; unmarked is why not, once that was said.
	instrumented *instrument.Build
	unmarked     string
	say          func(string)
}

// isInstrumented says whether the binary marks its reconciles.
func (m *marking) isInstrumented() bool { return m.instrumented != nil }

// prepare finds out how to build so that reconciles are marked. That this cannot be done is no reason not to build.
func (m *marking) prepare(ctx context.Context) error {
	if m.instrument == nil {
		return nil
	}
	var err error
	m.instrumented, err = m.instrument.Prepare(ctx)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	m.instrumented = nil
	m.sayUnmarked(err.Error())
	return nil
}

func (m *marking) sayUnmarked(reason string) {
	if reason != m.unmarked {
		m.unmarked = reason
		m.say("reconciles are inferred from the operator's writes and their times: " + reason)
	}
}

// isToBlame says whether a build failed because of what was added for marks. The operator itself may compile without them.
func (m *marking) isToBlame(output string) bool {
	if !m.isInstrumented() || !strings.Contains(output, m.instrument.Copies()) {
		return false
	}
	m.instrumented = nil
	m.sayUnmarked("this version of controller-runtime does not compile with marks")
	return true
}
