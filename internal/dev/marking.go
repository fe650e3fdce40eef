// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/opdock/opdock/internal/instrument"
)

// marking is how the operator is built to mark its reconciles for the lens. The zero value does not.
type marking struct {
	// instrument prepares such a build; nil for none.
	instrument *instrument.Project
	// instrumented is the prepared build, nil if it is not possible; unmarked is the reason, once it
	// was printed.
	instrumented *instrument.Build
	unmarked     string
	say          func(string)
}

// isInstrumented reports whether the binary marks its reconciles, if controller-runtime calls them.
func (m *marking) isInstrumented() bool { return m.instrumented != nil }

// prepare prepares a build that marks reconciles. If that is not possible, the operator is built without marks.
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

// inferred begins a note, and is followed by the reason.
const inferred = "reconciles are inferred from the operator's writes and their times: "

func (m *marking) sayUnmarked(reason string) {
	if reason != m.unmarked {
		m.unmarked = reason
		m.say(inferred + reason)
	}
}

// isToBlame reports whether a build failed because of the code for marks. The operator itself may compile
// without it.
func (m *marking) isToBlame(output string) bool {
	if !m.isInstrumented() || !isAboutCopy(output, m.instrument.Copies()) {
		return false
	}
	m.instrumented = nil
	m.sayUnmarked("this version of controller-runtime does not compile with marks")
	return true
}

// copiedPackage is the line with which go begins the errors of a package of controller-runtime.
var copiedPackage = regexp.MustCompile(`(?m)^# sigs\.k8s\.io/controller-runtime(/|\s|$)`)

// isAboutCopy reports whether the output of go is about a file of the copy of controller-runtime. Go shortens the names
// of files to relative ones, so the folder with copies may be there in part only.
func isAboutCopy(output, copies string) bool {
	return copiedPackage.MatchString(output) || strings.Contains(output, copies+string(filepath.Separator)) ||
		strings.Contains(output, filepath.Join(filepath.Base(copies), "controller-runtime@"))
}
