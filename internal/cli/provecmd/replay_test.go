// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package provecmd

import (
	"testing"
	"time"

	"github.com/opdock/opdock/prove"
)

func TestLiveLines(t *testing.T) {
	for want, line := range map[string]prove.Line{
		"       1.500s  step: create":                                      {At: 1500 * time.Millisecond, Text: "step: create"},
		"  !    2.000s  the operator is killed":                            {At: 2 * time.Second, Text: "the operator is killed", Fault: true},
		"      12.345s  create configmaps default/a 201  at cmd/main.go:7": {At: 12345 * time.Millisecond, Text: "create configmaps default/a 201", Where: "cmd/main.go:7"},
		"       0.000s  �[31mred":                                          {Text: "\x1b[31mred"},
	} {
		if got := liveLine(line); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
