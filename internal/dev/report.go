// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Screen shows the progress of a session.
type Screen interface {
	// Busy shows the current activity; empty if there is none.
	Busy(text string)
	// Round shows a round that has ended.
	Round(Round)
	// Say shows a message that belongs to no round.
	Say(text string)
	// Log shows a line of the operator's log.
	Log(line string)
}

// Round is the handling of one change.
type Round struct {
	// Began is when the change was noticed.
	Began time.Time `json:"began"`
	// Changed and Reason are why there was something to do: files, relative to the project, or words.
	Changed []string `json:"changed,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	// Steps are the steps that were done, in order.
	Steps []Step `json:"steps"`
	// State is how the operator was seen to be after a restart: reconciling, ready or running; empty if it was not
	// restarted.
	State string `json:"state,omitempty"`
	// After is how long that took from the restart.
	After Duration `json:"after,omitzero"`
	// Problem is what kept the round from its end.
	Problem *Problem `json:"problem,omitempty"`
}

// Step is a part of a round.
type Step struct {
	Name string   `json:"name"` // generate, build, apply, restart or samples
	Text string   `json:"text"` // for people
	Took Duration `json:"took,omitzero"`
	// Files are the generated files, relative to the project.
	Files []string `json:"files,omitempty"`
}

// Problem is a failure that needs the user's attention.
type Problem struct {
	Step  string   `json:"step"` // as in Step, or run
	Text  string   `json:"text"`
	Lines []string `json:"lines,omitempty"` // details, such as compiler errors
	Hint  string   `json:"hint,omitempty"`
}

// StepRun is the step of the problem if the operator exits.
const StepRun = "run"

const (
	stepApply    = "apply"
	stepRestart  = "restart"
	stepWebhooks = "webhooks"
	stepSamples  = "samples"
)

// Duration is a time that JSON has in seconds.
type Duration time.Duration

// MarshalJSON rounds to what means something.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Duration(d).Round(time.Millisecond).Milliseconds()) / 1000)
}

// UnmarshalJSON is the reverse.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var seconds float64
	if err := json.Unmarshal(data, &seconds); err != nil {
		return err
	}
	*d = Duration(seconds * float64(time.Second))
	return nil
}

// String is a duration as a status line has it: 0.3 s, 12 s, 2 min 5 s.
func (d Duration) String() string {
	switch took := time.Duration(d); {
	case took < 10*time.Second:
		return fmt.Sprintf("%.1f s", took.Seconds())
	case took < 2*time.Minute:
		return fmt.Sprintf("%.0f s", took.Seconds())
	default:
		took = took.Round(time.Second)
		return fmt.Sprintf("%d min %d s", int(took.Minutes()), int(took.Seconds())%60)
	}
}

// written returns the steps that wrote files of the project, which the user sees even if the round is canceled.
func (r Round) written() []Step {
	return slices.DeleteFunc(slices.Clone(r.Steps), func(one Step) bool { return len(one.Files) == 0 })
}

// Line is the round on one line.
func (r Round) Line() string {
	parts := []string{r.cause()}
	last := -1
	for i, step := range r.Steps {
		if step.Name == stepRestart {
			last = i
		}
	}
	for i, step := range r.Steps {
		text := step.Text
		if step.Took > 0 {
			text += " " + step.Took.String()
		}
		parts = append(parts, text)
		// A round restarts the operator again if a kind was missing, for example. The state is that after the last one.
		if i == last && r.State != "" {
			parts = append(parts, r.State+" after "+r.After.String())
		}
	}
	switch {
	case r.Problem != nil:
		parts = append(parts, r.Problem.Text)
	case len(r.Steps) == 0:
		parts = append(parts, "nothing to do")
	}
	return r.Began.Format(time.TimeOnly) + " " + strings.Join(parts, " · ")
}

// Details are further lines, if there are any.
func (r Round) Details() []string {
	if r.Problem == nil {
		return nil
	}
	lines := r.Problem.Lines
	if r.Problem.Hint != "" {
		lines = append(lines[:len(lines):len(lines)], r.Problem.Hint)
	}
	return lines
}

// cause names the changed files if there are few.
func (r Round) cause() string {
	switch n := len(r.Changed); n {
	case 0:
		return r.Reason
	case 1:
		return r.Changed[0] + " changed"
	case 2:
		return r.Changed[0] + " and " + r.Changed[1] + " changed"
	default:
		return fmt.Sprintf("%s and %d more files changed", r.Changed[0], n-1)
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
