// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The objects of SARIF 2.1.0, as far as they are used here.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Automation  sarifAutomation   `json:"automationDetails"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifAutomation struct {
		ID string `json:"id"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		URI     string      `json:"informationUri"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID     string        `json:"id"`
		Name   string        `json:"name"`
		Short  sarifMessage  `json:"shortDescription"`
		Full   sarifMessage  `json:"fullDescription"`
		Help   sarifMessage  `json:"help"`
		Config sarifDefaults `json:"defaultConfiguration"`
	}
	sarifDefaults struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Start         string              `json:"startTimeUtc,omitempty"`
		End           string              `json:"endTimeUtc,omitempty"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string       `json:"level"`
		Message sarifMessage `json:"message"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifMessage      `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Related      []sarifLocation   `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Properties   sarifProperties   `json:"properties"`
	}
	sarifLocation struct {
		ID       *int           `json:"id,omitempty"`
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifMessage  `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI  string `json:"uri"`
		Base string `json:"uriBaseId,omitempty"`
	}
	sarifRegion struct {
		Line   int `json:"startLine"`
		Column int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
	sarifProperties struct {
		Family   string   `json:"family"`
		Severity string   `json:"severity"`
		Flaky    bool     `json:"flaky"`
		Runs     []string `json:"runs"`
		Replay   string   `json:"replay"`
	}
)

const (
	sarifSchema  = "https://json.schemastore.org/sarif-2.1.0.json"
	sarifProject = "https://github.com/opdock/opdock"
	sarifRoot    = "%SRCROOT%"
	// unknownFile stands for the project where a finding has no file: code scanning services refuse results without one.
	unknownFile = "go.mod"
)

// SARIF writes the findings as SARIF 2.1.0, for code scanning services. Rules are verdicts. Flaky findings are notes.
func SARIF(w io.Writer, r *Report) error {
	r = r.sorted()
	run := sarifRun{
		Tool:       sarifTool{sarifDriver{Name: "opdock prove", Version: visible(r.Opdock), URI: sarifProject, Rules: r.rules()}},
		Automation: sarifAutomation{"opdock-prove/" + visible(r.Campaign)},
		Results:    []sarifResult{},
	}
	invocation := sarifInvocation{Successful: r.cutShort() == "" && r.ExitCode() != exitNotTried, Notifications: r.notifications()}
	if !r.Began.IsZero() {
		invocation.Start = r.Began.UTC().Format(time.RFC3339)
		invocation.End = r.Began.UTC().Add(r.Took).Format(time.RFC3339)
	}
	run.Invocations = []sarifInvocation{invocation}
	for i := range r.Findings {
		run.Results = append(run.Results, r.Findings[i].result(run.Tool.Driver.Rules))
	}
	return writeJSON(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

// rules are all verdicts, and those that only this report knows.
func (r *Report) rules() []sarifRule {
	words := slices.Clone(verdicts)
	for _, finding := range r.Findings {
		if rank(words, finding.Verdict) == len(words) {
			words = append(words, word{name: finding.Verdict, label: finding.Verdict})
		}
	}
	rules := make([]sarifRule, 0, len(words))
	for _, w := range words {
		about := sarifMessage{visible(cmp.Or(w.about, w.label))}
		help := sarifMessage{about.Text + " The replay command in the result reproduces it."}
		rules = append(rules, sarifRule{
			ID: visible(w.name), Name: pascal(w.name), Short: sarifMessage{visible(w.label)}, Full: about, Help: help,
			Config: sarifDefaults{"warning"},
		})
	}
	return rules
}

func pascal(name string) string {
	var text strings.Builder
	for part := range strings.SplitSeq(visible(name), "-") {
		first, size := utf8.DecodeRuneInString(part)
		if size > 0 {
			text.WriteString(string(unicode.ToUpper(first)) + part[size:])
		}
	}
	return text.String()
}

// notifications say what the results do not cover.
func (r *Report) notifications() []sarifNotification {
	var all []sarifNotification
	note := func(level, text string) { all = append(all, sarifNotification{level, sarifMessage{text}}) }
	if early := r.cutShort(); early != "" {
		note("warning", early)
	}
	if failed := r.Totals().Failed; failed > 0 {
		note("warning", plural(failed, "run")+" could not be judged.")
	}
	for i := range r.NotTried {
		one := &r.NotTried[i]
		what, _ := one.subject()
		note("note", fmt.Sprintf("Not tried in family %s: %s: %s", visible(one.Family), what, visible(one.Reason)))
	}
	if len(r.NoEffect) > 0 {
		note("note", "No effect was seen of "+visible(strings.Join(r.NoEffect, ", ")))
	}
	for _, text := range r.Blind {
		note("note", "Not visible with simulated pods: "+visible(text))
	}
	return all
}

func (f *Finding) result(rules []sarifRule) sarifResult {
	level := map[string]string{"high": "error", "medium": "warning"}[f.Severity]
	if level == "" || f.Flaky {
		level = "note"
	}
	verdict := visible(f.Verdict)
	result := sarifResult{
		RuleID:    verdict,
		RuleIndex: slices.IndexFunc(rules, func(rule sarifRule) bool { return rule.ID == verdict }),
		Level:     level,
		Message:   sarifMessage{f.message()},
		// The first name is ours. The second is the one that code scanning services compare.
		Fingerprints: map[string]string{"opdockFinding/v1": f.ID, "primaryLocationLineHash": f.ID},
		Properties: sarifProperties{
			Family: visible(f.Family), Severity: visible(f.Severity), Flaky: f.Flaky, Runs: notNil(f.Runs), Replay: visible(f.Replay),
		},
	}
	for i, p := range f.places() {
		location := p.location()
		if i == 0 {
			result.Locations = []sarifLocation{location}
			continue
		}
		location.ID = &i
		result.Related = append(result.Related, location)
	}
	if len(result.Locations) == 0 {
		result.Locations = []sarifLocation{{
			Physical: sarifPhysical{Artifact: sarifArtifact{unknownFile, sarifRoot}},
			Message:  &sarifMessage{"The line of code is unknown. This file stands for the project."},
		}}
	}
	if f.Object != "" {
		result.Locations[0].Logical = []sarifLogical{{Name: visible(f.Object), Kind: "resource"}}
	}
	return result
}

func (p place) location() sarifLocation {
	uri, relative := p.uri()
	artifact := sarifArtifact{URI: uri}
	if relative {
		artifact.Base = sarifRoot
	}
	location := sarifLocation{Physical: sarifPhysical{Artifact: artifact, Region: &sarifRegion{p.line, p.col}}}
	if p.text != "" {
		location.Message = &sarifMessage{visible(p.text)}
	}
	return location
}

// message is what a code scanning service shows beside the line.
func (f *Finding) message() string {
	lines := []string{visible(f.Title)}
	if f.Flaky {
		lines[0] = "Flaky: " + lines[0]
	}
	for _, part := range []struct{ label, value string }{
		{"Done", f.Done}, {"Want", f.Want}, {"Got", f.Got}, {"Seen", f.evidence()}, {"Replay", f.Replay},
	} {
		if part.value != "" {
			lines = append(lines, part.label+": "+visibleText(part.value))
		}
	}
	return strings.Join(lines, "\n")
}
