// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// The elements of JUnit XML, as far as all readers agree on them.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
		Out        *junitText      `xml:"system-out"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Line    int           `xml:"line,attr,omitempty"`
		Failure *junitFailure `xml:"failure"`
		Skipped *junitSkipped `xml:"skipped"`
		Out     *junitText    `xml:"system-out"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",cdata"`
	}
	junitText struct {
		Text string `xml:",cdata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// JUnit writes the report as JUnit XML. Each family is a test suite. Each finding is a test case that failed, or that
// was skipped if it is flaky. One more test case for each family stands for its clean runs.
func JUnit(w io.Writer, r *Report) error {
	r = r.sorted()
	all := junitSuites{Name: "opdock prove " + visible(r.Project), Time: fmt.Sprintf("%.3f", r.Took.Seconds())}
	for _, family := range r.allFamilies() {
		suite := r.suite(&family)
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Skipped += suite.Skipped
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (r *Report) suite(family *Family) junitSuite {
	suite := junitSuite{Name: visible(family.Name), Properties: []junitProperty{
		{"campaign", visible(r.Campaign)},
		{"seed", strconv.FormatUint(r.Seed, 10)},
		{"opdock", visible(r.Opdock)},
		{"runs", fmt.Sprintf("%d of %d planned", family.Ran, family.Planned)},
	}}
	if !r.Began.IsZero() {
		suite.Timestamp = r.Began.UTC().Format("2006-01-02T15:04:05")
	}
	class := "prove." + visible(family.Name)
	suite.Cases = append(suite.Cases, r.cleanCase(family, class))
	if family.Failed > 0 {
		message := plural(family.Failed, "run") + " could not be judged"
		suite.Cases = append(suite.Cases, junitCase{Name: "runs that could not be judged", Class: class, Skipped: &junitSkipped{message}})
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Family == family.Name {
			suite.Cases = append(suite.Cases, findingCase(f, class))
		}
	}
	suite.Tests = len(suite.Cases)
	for _, one := range suite.Cases {
		if one.Failure != nil {
			suite.Failures++
		}
		if one.Skipped != nil {
			suite.Skipped++
		}
	}
	if text := r.leftOut(family.Name); text != "" {
		suite.Out = &junitText{text}
	}
	return suite
}

// cleanCase stands for the clean runs of a family. Its name has no number, so that CI systems recognize it next time.
func (r *Report) cleanCase(family *Family, class string) junitCase {
	clean := junitCase{Name: "clean runs", Class: class}
	switch {
	case family.Ran == 0 && r.Interrupted:
		clean.Skipped = &junitSkipped{"no run: the campaign was interrupted"}
	case family.Ran == 0 && r.Broken != "":
		clean.Skipped = &junitSkipped{"no run: the campaign ended early"}
	case family.Ran == 0:
		clean.Skipped = &junitSkipped{"no run"}
	case family.Clean == 0:
		clean.Skipped = &junitSkipped{fmt.Sprintf("none of %s was clean", plural(family.Ran, "run"))}
	default:
		clean.Out = &junitText{fmt.Sprintf("%d of %s clean", family.Clean, plural(family.Ran, "run"))}
	}
	return clean
}

func findingCase(f *Finding, class string) junitCase {
	one := junitCase{Name: fmt.Sprintf("%s: %s", visible(f.ID), visible(f.Title)), Class: class}
	if places := f.places(); len(places) > 0 {
		one.File, one.Line = places[0].file, places[0].line
	}
	if f.Flaky {
		one.Skipped = &junitSkipped{"flaky: " + f.evidence()}
		one.Out = &junitText{f.plain()}
	} else {
		one.Failure = &junitFailure{Message: visible(f.Title), Type: visible(f.Verdict), Text: f.plain()}
	}
	return one
}

// leftOut lists what was not tried in a family.
func (r *Report) leftOut(family string) string {
	var text strings.Builder
	for i := range r.NotTried {
		one := &r.NotTried[i]
		if one.Family != family {
			continue
		}
		what, count := one.subject()
		fmt.Fprintf(&text, "not tried: %s", what)
		if count != "" {
			fmt.Fprintf(&text, " (%s)", count)
		}
		fmt.Fprintf(&text, ": %s\n", visible(one.Reason))
	}
	return text.String()
}

// plain is a finding as text without any layout, in full.
func (f *Finding) plain() string {
	var text strings.Builder
	put := func(label, value string) {
		if value != "" {
			lines := strings.Join(visibleLines(value), "\n        ")
			fmt.Fprintf(&text, "%-7s %s\n", label, lines)
		}
	}
	put("seen", fmt.Sprintf("%s severity, %s", visible(f.Severity), f.evidence()))
	put("done", f.Done)
	put("want", f.Want)
	put("got", f.Got)
	put("object", f.Object)
	put("fields", strings.Join(f.Fields, ", "))
	var story []string
	for _, line := range f.Story {
		story = append(story, storyLine(line))
	}
	put("story", strings.Join(story, "\n"))
	put("where", strings.Join(f.Where, "\n"))
	put("runs", strings.Join(f.Runs, ", "))
	put("replay", f.Replay)
	return text.String()
}

func storyLine(line Line) string {
	mark := " "
	if line.Fault {
		mark = "!"
	}
	return fmt.Sprintf("%s %9s  %s", mark, moment(line.At.Round(time.Millisecond)), visible(line.Text))
}
