// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report holds what a campaign of opdock prove found, and writes it for people and for programs: as text for
// a terminal, as JSON, as JUnit XML, as SARIF, and as an HTML page that needs no other file.
package report

import "time"

// Format is the version of the JSON format that this package writes, and the newest that it reads.
const Format = 1

// Report is what a campaign found.
type Report struct {
	Format      int           `json:"format"`
	Opdock      string        `json:"opdock"` // version
	Project     string        `json:"project"`
	Campaign    string        `json:"campaign"` // ID, such as 20261116T211500
	Began       time.Time     `json:"began"`
	Took        time.Duration `json:"nanoseconds"`
	Budget      time.Duration `json:"budget"`
	Seed        uint64        `json:"seed"`
	Parallel    int           `json:"parallel"`
	Steps       []string      `json:"steps"` // names of the scenario's steps
	Reference   Reference     `json:"reference"`
	Families    []Family      `json:"families"` // in the order of the table of families
	Findings    []Finding     `json:"findings"` // the worst first
	NotTried    []NotTried    `json:"notTried,omitempty"`
	Blind       []string      `json:"blind"`              // what cannot be seen with simulated pods
	NoEffect    []string      `json:"noEffect,omitempty"` // properties whose valid values changed nothing
	Interrupted bool          `json:"interrupted,omitempty"`
	Broken      string        `json:"broken,omitempty"` // why runs could not go on, such as a full disk
}

// Reference is what the operator does undisturbed.
type Reference struct {
	Runs    int  `json:"runs"`
	Writes  int  `json:"writes"`  // that changed something
	Objects int  `json:"objects"` // at the end of the largest step
	Masked  int  `json:"masked"`  // fields that differed between undisturbed runs
	Marked  bool `json:"marked"`  // reconciles are marked by an instrumented build
	// Failing are the errors at which the operator is stuck undisturbed.
	Failing []string `json:"failing,omitempty"`
	// Unfinished are the custom resources that are not ready at the end, undisturbed, and why.
	Unfinished []string `json:"unfinished,omitempty"`
	// Kept is how many claims Kubernetes keeps by design after everything was deleted.
	Kept int `json:"kept,omitempty"`
}

// Family is one way to disturb an operator, and how its runs ended.
type Family struct {
	// Name is crash, lost, refused, stale, unobserved, slow, drift, pods, order, input, upgrade or undisturbed.
	Name     string         `json:"name"`
	Planned  int            `json:"planned"`
	Ran      int            `json:"ran"`
	Clean    int            `json:"clean"`
	Failed   int            `json:"failed"` // could not be judged
	Flaky    int            `json:"flaky"`
	Verdicts map[string]int `json:"verdicts,omitempty"` // runs with a finding, by verdict
}

// Finding is one defect, however many runs show it.
type Finding struct {
	ID       string `json:"id"`       // short and stable across campaigns: family-hash
	Severity string `json:"severity"` // high, medium or low
	Family   string `json:"family"`
	// Verdict is end-state, update, counts, leftovers, status, panic, exit, loop, rest-writes, admission, foreign, deletion,
	// refused-rights or unsettled.
	Verdict string   `json:"verdict"`
	Title   string   `json:"title"` // one sentence
	Done    string   `json:"done"`  // what was done to the operator
	Want    string   `json:"want"`
	Got     string   `json:"got"`
	Object  string   `json:"object,omitempty"`
	Fields  []string `json:"fields,omitempty"`
	Story   []Line   `json:"story,omitempty"`
	Where   []string `json:"where,omitempty"` // file:line and what is written there
	Runs    []string `json:"runs"`            // IDs of the runs that show it
	Replay  string   `json:"replay"`          // the command that shows it again
	// Replays is how often it was tried again, and Again in how many of these it happened again.
	Replays int  `json:"replays,omitempty"`
	Again   int  `json:"again,omitempty"`
	Flaky   bool `json:"flaky,omitempty"`
	// After is how long the campaign had run when it was first seen.
	After time.Duration `json:"after,omitempty"`
}

// Line is one write, event or fault in the story of a finding.
type Line struct {
	At    time.Duration `json:"at"`
	Text  string        `json:"text"`
	Fault bool          `json:"fault,omitempty"`
	Where string        `json:"where,omitempty"` // file:line of a write
	Wrong bool          `json:"wrong,omitempty"` // the operator should not have done it
}

// NotTried is what a campaign left out, and why.
type NotTried struct {
	Family string `json:"family"`
	What   string `json:"what"`
	Reason string `json:"reason"`
	Count  int    `json:"count,omitempty"`
}
