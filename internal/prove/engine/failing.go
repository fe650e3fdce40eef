// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// An operator that keeps failing although nothing disturbs it does not get to what comes after the failure: it waits, for example, for
// an application that simulated pods do not run. What it leaves undone then says nothing about how it recovers.

// variable are parts of errors that are different each time.
var variable = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\d+`)

// plain returns an error without what is different each time.
func plain(failure string) string { return variable.ReplaceAllString(firstLine(failure), "#") }

// learnFailing keeps at which errors the operator is stuck undisturbed.
func (c *campaign) learnFailing(failing []string) {
	for _, one := range failing {
		if _, known := c.failing[plain(one)]; !known {
			c.failing[plain(one)] = firstLine(one)
		}
	}
}

// failures are the errors at which the operator is stuck undisturbed, for the report.
func (c *campaign) failures() []string { return slices.Sorted(maps.Values(c.failing)) }

// excuse leaves out of what is wrong what the operator may only have left undone because it is stuck at the same error as undisturbed,
// and says so. What it has done, it has done.
func (c *campaign) excuse(wrong []*Observation, failing []string) (blamed []*Observation, excused string) {
	at := slices.IndexFunc(failing, func(one string) bool { return c.failing[plain(one)] != "" })
	if at < 0 {
		return wrong, ""
	}
	for _, o := range wrong {
		switch o.Verdict {
		case "unsettled": // as undisturbed
		case "end-state", "status", "leftovers", "deletion":
			excused = "the operator keeps failing, as it does undisturbed: " + shortened(c.failing[plain(failing[at])])
		default:
			blamed = append(blamed, o)
		}
	}
	return blamed, excused
}

// longestReason is how much of an error is shown.
const longestReason = 160

func shortened(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= longestReason {
		return text
	}
	return strings.ToValidUTF8(text[:longestReason], "") + "…"
}
