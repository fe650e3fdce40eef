// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opdock/opdock/internal/prove/values"
)

// setting is what a plan does to properties, in texts by which fields that carry them are known. A variable may be named like
// a trace of the past, such as GIT_REVISION, and get its value from a custom resource.
type setting struct{ before, after []string }

// settingOf returns what a plan does to properties; nothing if it does not change any.
func (c *campaign) settingOf(p *Plan) (s setting) {
	if p.Variant == undone {
		return c.settingIn(p.Step)
	}
	change, err := changeOf(p.Value)
	if p.Family != "input" || p.Variant == unchanged || err != nil {
		return s
	}
	// Elsewhere, a number is more likely a count of something else.
	numbers := pastNames.MatchString(humps.ReplaceAllString(values.Path(change.Path), "$1-$2"))
	s.after = telling(change.Value, numbers)
	for key, object := range c.reference[p.Step-1].state {
		if key.String() == p.Object {
			s.before = telling(change.In(object.Object), numbers)
		}
	}
	return s
}

// settingIn returns what a step of the scenario does to its objects.
func (c *campaign) settingIn(step int) (s setting) {
	texts := func(state *stage) (all []string) {
		for _, one := range slices.Concat(c.o.Others, c.o.Subjects) {
			if live := state.find(one); live != nil {
				all = append(all, telling(live.Object["spec"], false)...)
				all = append(all, telling(live.Object["data"], false)...)
			}
		}
		return all
	}
	s.before, s.after = texts(c.reference[step-1]), texts(c.reference[step])
	without := func(these, others []string) []string {
		return slices.DeleteFunc(slices.Clone(these), func(one string) bool { return slices.Contains(others, one) })
	}
	s.before, s.after = without(s.before, s.after), without(s.after, s.before)
	return s
}

// telling returns the texts in a value that fields do not have by chance.
func telling(value any, numbers bool) (texts []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, one := range v {
			texts = append(texts, telling(one, numbers)...)
		}
	case []any:
		for _, one := range v {
			texts = append(texts, telling(one, numbers)...)
		}
	case string, int64, float64:
		text := fmt.Sprint(v)
		if _, err := strconv.ParseFloat(text, 64); err == nil && numbers || err != nil && len(text) > 1 {
			texts = append(texts, text)
		}
	}
	return texts
}

// lags reports whether a field has the property as it was before the plan, and should have it as it is after it.
func (s setting) lags(got, want string) bool {
	only := func(here, there string, texts []string) bool {
		return slices.ContainsFunc(texts, func(one string) bool { return strings.Contains(here, one) && !strings.Contains(there, one) })
	}
	return only(want, got, s.after) || only(got, want, s.before)
}
