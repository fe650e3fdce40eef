// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Reporter reports each finding when it begins, again whenever it has become ten times as large, and when it is over.
type Reporter struct {
	Tracker *Tracker
	Say     func(sentence string)

	said map[string]said
}

type said struct {
	finding Finding
	again   int // the count at which it is reported again
}

// lookInterval is how often a reporter looks.
const lookInterval = time.Second

// Run reports until the context ends.
func (r *Reporter) Run(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			r.Report(now)
		case <-ctx.Done():
			return
		}
	}
}

// Report returns the findings that are new at a time.
func (r *Reporter) Report(now time.Time) {
	current := map[string]said{}
	for _, f := range r.Tracker.At(now) {
		id := strings.Join([]string{string(f.Type), f.Controller, f.Object.Group, f.Object.Kind, f.Object.Namespace, f.Object.Name}, "/")
		before, known := r.said[id]
		before.finding = f
		if !known || f.Count >= before.again {
			r.Say(f.Sentence)
			before.again = 10 * f.Count
		}
		current[id] = before
	}
	for id, before := range r.said {
		if _, still := current[id]; !still {
			r.Say(before.finding.ended())
		}
	}
	r.said = current
}

func (f Finding) ended() string {
	name := strings.TrimSpace(f.Object.Kind + " " + f.Object.Name)
	switch f.Type {
	case Loop:
		return fmt.Sprintf("%s is no longer in a loop, after %s.", name, reconciles(f.Count))
	case Failing:
		return fmt.Sprintf("%s no longer fails, after %s.", name, reconciles(f.Count))
	default:
		return name + " is no longer reconciled very often."
	}
}
