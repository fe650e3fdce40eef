// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
)

var (
	//go:embed page.html.tmpl
	pageText string
	//go:embed page.css
	pageStyle string

	page = template.Must(template.New("page").Parse(pageText))
)

// openFindings is how many findings the page shows unfolded.
const openFindings = 3

// HTML writes the report as one HTML page. It needs no other file, and its content security policy allows nothing but
// its own style, whatever a message of an operator contains.
func HTML(w io.Writer, r *Report) error {
	return page.Execute(w, newPage(r.sorted()))
}

// The data of the page. All texts are visible already; the template escapes them.
type (
	pageData struct {
		Style         template.CSS
		Policy        string
		Project       string
		Outcome       string // clean, findings, unknown
		Headline      string
		Undisturbed   string
		CutShort      string
		Summary       string
		Tiles         []pageTile
		Steps         []string
		Columns       []pageColumn
		Rows          []pageRow
		Many          bool // columns: too many for a bar beside them
		HasFlaky      bool
		HasFailed     bool
		Findings      []pageFinding
		Flaky         []pageFinding
		FlakyNote     string
		NotTried      []pageNotTried
		Blind         []string
		NoEffect      []string
		NoEffectNote  string
		Began, Opdock string
		Facts         []pageFact
	}
	pageTile   struct{ Value, Label, Tone string }
	pageFact   struct{ Name, Value string }
	pageColumn struct{ Label, About string }
	pageRow    struct {
		Name, About, Runs    string
		Clean, Flaky, Failed string
		Cells                []pageCell
		// Parts of a bar of 100 units.
		Bar   []pagePart
		Total bool
	}
	pageCell struct {
		Value, Link string
		Bad         bool
	}
	pagePart struct {
		Tone     string
		From, To float64
	}
	pageFinding struct {
		Number                      int
		ID, Severity, Title         string
		Family, Verdict, Evidence   string
		Done, Want, Got             string
		Object, Replay              string
		Fields, Where, Runs         []string
		Story                       []pageLine
		Open, Flaky                 bool
		FamilyAbout, VerdictMeaning string
	}
	pageLine struct {
		At, Text string
		Fault    bool
		Where    string
	}
	pageNotTried struct{ Family, What, Reason, Count string }
)

func newPage(r *Report) pageData {
	t := r.Totals()
	sum := sha256.Sum256([]byte(pageStyle))
	data := pageData{
		Style: template.CSS(pageStyle),
		Policy: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'none'",
			base64.StdEncoding.EncodeToString(sum[:])),
		Project:     visible(r.Project),
		Headline:    r.outcome(),
		Undisturbed: r.undisturbed(),
		Summary:     r.summary(),
		CutShort:    r.cutShort(),
		Steps:       allVisible(r.Steps),
		HasFlaky:    t.FlakyRuns > 0,
		HasFailed:   t.Failed > 0,
		FlakyNote:   flakyNote,
		Blind:       allVisible(r.Blind),
		NoEffect:    allVisible(r.NoEffect), NoEffectNote: noEffectNote,
		Opdock: visible(r.Opdock),
	}
	switch {
	case t.Findings > 0:
		data.Outcome, data.Headline = "findings", plural(t.Findings, "finding")
	case t.Judged() <= 0 || r.cutShort() != "":
		data.Outcome = "unknown"
	default:
		data.Outcome = "clean"
	}
	if !r.Began.IsZero() {
		data.Began = r.Began.UTC().Format("2 January 2006, 15:04 UTC")
	}
	data.Tiles = r.tiles()
	data.Facts = r.facts()
	data.table(r)
	for i := range r.Findings {
		f := newPageFinding(&r.Findings[i], i+1)
		if f.Flaky {
			data.Flaky = append(data.Flaky, f)
		} else {
			data.Findings = append(data.Findings, f)
		}
	}
	for i := range r.NotTried {
		one := &r.NotTried[i]
		what, count := one.subject()
		data.NotTried = append(data.NotTried, pageNotTried{visible(one.Family), what, visible(one.Reason), count})
	}
	return data
}

func (r *Report) tiles() []pageTile {
	t := r.Totals()
	var tiles []pageTile
	for _, severity := range severities {
		if n := t.Severities[severity]; n > 0 {
			tiles = append(tiles, pageTile{strconv.Itoa(n), severity, severity})
		}
	}
	if t.Flaky > 0 {
		tiles = append(tiles, pageTile{strconv.Itoa(t.Flaky), "flaky", ""})
	}
	runs := strconv.Itoa(t.Ran)
	if t.Ran < t.Planned {
		runs = fmt.Sprintf("%d of %d", t.Ran, t.Planned)
	}
	tiles = append(tiles, pageTile{runs, "runs", ""})
	if t.Judged() > 0 {
		tiles = append(tiles, pageTile{strconv.Itoa(t.Clean), "clean", ""})
	}
	if t.Failed > 0 {
		tiles = append(tiles, pageTile{strconv.Itoa(t.Failed), "not judged", "medium"})
	}
	return append(tiles, pageTile{took(r.Took), "duration", ""})
}

// facts are what a reader needs to run the same campaign again.
func (r *Report) facts() []pageFact {
	facts := []pageFact{{"Campaign", visible(r.Campaign)}, {"Seed", strconv.FormatUint(r.Seed, 10)}, {"Parallel", plural(r.Parallel, "run")}}
	if r.Budget > 0 {
		facts = append(facts, pageFact{"Budget", took(r.Budget)})
	}
	return append(facts, pageFact{"Opdock", visible(r.Opdock)})
}

// table fills in families × verdicts.
func (d *pageData) table(r *Report) {
	columns := r.columns()
	for _, verdict := range columns {
		w := describe(verdicts, verdict)
		d.Columns = append(d.Columns, pageColumn{middle(visible(w.label), 2*nameWidth), w.about})
	}
	d.Many = len(columns) > 6
	rows := r.rows(columns)
	at := func(family, verdict string) string {
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Family == family && f.Verdict == verdict && !f.Flaky })
		if i < 0 {
			return ""
		}
		return "#" + anchor(i+1)
	}
	for i, row := range rows[1:] {
		one := pageRow{Name: row[0], Runs: row[1], Clean: row[2], Total: i == len(r.Families)}
		family := Family{Name: "", Verdicts: map[string]int{}}
		if !one.Total {
			family = r.Families[i]
			one.About = describe(families, family.Name).about
			one.Bar = family.bar()
		}
		for j, verdict := range columns {
			value := row[3+j]
			one.Cells = append(one.Cells, pageCell{Value: value, Link: at(family.Name, verdict), Bad: value != none})
		}
		rest := row[3+len(columns):]
		if d.HasFlaky {
			one.Flaky, rest = rest[0], rest[1:]
		}
		if d.HasFailed {
			one.Failed = rest[0]
		}
		d.Rows = append(d.Rows, one)
	}
}

// bar shows how the planned runs ended. Runs with findings are what is left of those that ran.
func (f *Family) bar() []pagePart {
	all := float64(max(f.Planned, f.Ran))
	if all == 0 {
		return nil
	}
	found := max(f.Ran-f.Clean-f.Failed-f.Flaky, 0)
	var parts []pagePart
	from := 0.0
	for _, part := range []struct {
		tone string
		runs int
	}{{"bad", found}, {"flaky", f.Flaky}, {"failed", f.Failed}, {"clean", f.Clean}} {
		if part.runs > 0 {
			to := min(from+100*float64(part.runs)/all, 100)
			parts = append(parts, pagePart{part.tone, from, to - from})
			from = to
		}
	}
	return parts
}

func newPageFinding(f *Finding, number int) pageFinding {
	one := pageFinding{
		Number: number, ID: visible(f.ID), Severity: visible(f.Severity), Title: visible(f.Title),
		Family: visible(f.Family), Verdict: strings.ToLower(visible(describe(verdicts, f.Verdict).label)), Evidence: f.evidence(),
		Done: visibleText(f.Done), Want: visibleText(f.Want), Got: visibleText(f.Got),
		Object: visible(f.Object), Replay: visible(f.Replay), Fields: allVisible(f.Fields), Where: allVisible(f.Where), Runs: allVisible(f.Runs),
		Open: number <= openFindings && !f.Flaky, Flaky: f.Flaky,
		FamilyAbout: describe(families, f.Family).about, VerdictMeaning: describe(verdicts, f.Verdict).about,
	}
	for _, line := range f.Story {
		one.Story = append(one.Story, pageLine{moment(line.At), visible(line.Text), line.Fault, visible(line.Where)})
	}
	return one
}

// Anchor is the name of a finding within the page. IDs are not used: nothing says which characters they have.
func (f pageFinding) Anchor() string { return anchor(f.Number) }

// Tone is the class of the severity.
func (f pageFinding) Tone() string {
	if slices.Contains(severities, f.Severity) {
		return f.Severity
	}
	return "low"
}

func anchor(number int) string { return fmt.Sprintf("finding-%d", number) }

func allVisible(texts []string) []string {
	shown := make([]string, 0, len(texts))
	for _, text := range texts {
		shown = append(shown, strings.TrimSpace(visible(text)))
	}
	return shown
}
