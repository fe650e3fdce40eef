// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
)

const (
	// inFull is how many findings the terminal shows in full. The others take one line each.
	inFull = 20
	// valueLines is how many lines of the terminal one value takes at most.
	valueLines = 6
	// storyLines is how many lines of a story the terminal shows.
	storyLines = 10

	defaultWidth = 100
	leastWidth   = 60
	labelWidth   = 8
)

// Text writes the report for a terminal that is width columns wide; 0 means unknown.
func Text(w io.Writer, r *Report, width int) {
	if width <= 0 {
		width = defaultWidth
	}
	t := &terminal{width: max(width, leastWidth), report: r.sorted()}
	t.header()
	t.table()
	t.findings()
	t.notTried()
	t.noEffect()
	t.blind()
	t.line("")
	t.paragraph(1, t.report.summary())
	fmt.Fprint(w, t.out.String())
}

// terminal collects lines.
type terminal struct {
	out    strings.Builder
	width  int
	report *Report
}

// line writes a line without spaces at its end.
func (t *terminal) line(text string) {
	t.out.WriteString(strings.TrimRight(text, " "))
	t.out.WriteByte('\n')
}

// paragraph writes a text, wrapped and indented.
func (t *terminal) paragraph(indent int, text string) {
	for _, one := range wrap(text, t.width-indent) {
		t.line(spaces(indent) + one)
	}
}

// labelled writes a text beside a label; what does not fit is in the same column.
func (t *terminal) labelled(indent int, label string, lines []string) {
	for i, one := range lines {
		if i > 0 {
			label = ""
		}
		t.line(spaces(indent) + pad(label, labelWidth) + one)
	}
}

func (t *terminal) header() {
	r := t.report
	left := " opdock prove  " + visible(r.Project)
	right := fmt.Sprintf("campaign %s  seed %d  %s", visible(r.Campaign), r.Seed, r.duration())
	if room := t.width - cells(left) - 2; room >= cells(right) {
		t.line(left + spaces(room+2-cells(right)) + right)
	} else {
		t.line(middle(left, t.width))
		t.paragraph(1, right)
	}
	t.line("")
	t.paragraph(1, r.undisturbed())
	if len(r.Steps) > 0 {
		steps := make([]string, 0, len(r.Steps))
		for _, step := range r.Steps {
			steps = append(steps, visible(step))
		}
		t.paragraph(1, "Steps: "+strings.Join(steps, " → "))
	}
	if early := r.cutShort(); early != "" {
		t.paragraph(1, early)
	}
}

func (t *terminal) findings() {
	sure, flaky := t.report.split()
	if len(sure) > 0 {
		t.line("")
		t.line(" " + strings.ToUpper(plural(len(sure), "finding")))
		for i := range sure[:min(len(sure), inFull)] {
			t.finding(i+1, &sure[i], true)
		}
	}
	if len(sure) > inFull {
		t.line("")
		t.paragraph(1, plural(len(sure)-inFull, "more finding")+" in short. To reproduce one, run opdock prove --replay ID.")
		t.line("")
		t.short(sure[inFull:])
	}
	if len(flaky) > 0 {
		t.line("")
		t.line(" " + strings.ToUpper(plural(len(flaky), "flaky finding")))
		t.paragraph(1, flakyNote)
		for i := range flaky[:min(len(flaky), inFull)] {
			t.finding(len(sure)+i+1, &flaky[i], false)
		}
		if len(flaky) > inFull {
			t.line("")
			t.short(flaky[inFull:])
		}
	}
}

// short writes one line for each finding.
func (t *terminal) short(some []Finding) {
	widest := 0
	for i := range some {
		widest = max(widest, cells(visible(some[i].ID)))
	}
	widest = min(widest, t.width/2)
	for i := range some {
		f := &some[i]
		begin := fmt.Sprintf("   %s  %s  ", pad(visible(f.Severity), 6), pad(middle(visible(f.ID), widest), widest))
		t.line(begin + middle(visible(f.Title), max(t.width-cells(begin), 8)))
	}
}

// finding writes one finding in full; a flaky one without its story.
func (t *terminal) finding(number int, f *Finding, story bool) {
	const indent = 5
	value := t.width - indent - labelWidth
	t.line("")
	for i, line := range wrap(visible(f.Title), t.width-indent) {
		if i == 0 {
			t.line(fmt.Sprintf("%3d. %s", number, line))
			continue
		}
		t.line(spaces(indent) + line)
	}
	t.paragraph(indent, fmt.Sprintf("%s · %s · %s", visible(f.Severity), visible(f.ID), f.evidence()))
	t.line("")
	put := func(label, text string) {
		if strings.TrimSpace(text) != "" {
			t.labelled(indent, label, block(text, value, valueLines))
		}
	}
	put("done", f.Done)
	put("want", f.Want)
	put("got", f.Got)
	put("object", middle(visible(f.Object), value))
	if len(f.Fields) > 0 {
		t.labelled(indent, "fields", wrapList(listed(f.Fields), value))
	}
	if story {
		t.labelled(indent, "story", t.story(f.Story, value))
	}
	put("where", strings.Join(f.Where, "\n"))
	// A command is never shortened: it is there to be copied.
	if f.Replay != "" {
		t.line(spaces(indent) + pad("replay", labelWidth) + visible(f.Replay))
	}
}

// story returns the lines of a story; faults are marked, and the lines around them are those that are kept.
func (t *terminal) story(lines []Line, width int) []string {
	shown := around(lines, storyLines)
	widest := 0
	for _, line := range lines {
		widest = max(widest, len(moment(line.At)))
	}
	var drawn []string
	left := 0
	for i, line := range lines {
		if !shown[i] {
			left++
			continue
		}
		if left > 0 {
			drawn = append(drawn, fmt.Sprintf("%s  … %s", spaces(widest+2), plural(left, "more line")))
			left = 0
		}
		mark := " "
		if line.Fault {
			mark = "!"
		}
		begin := fmt.Sprintf("%s %*s  ", mark, widest, moment(line.At))
		parts := wrap(visible(line.Text), width-len(begin))
		if len(parts) > 2 {
			parts = []string{middle(visible(line.Text), width-len(begin))}
		}
		if line.Where != "" {
			place, last := middle("at "+visible(line.Where), width-len(begin)), len(parts)-1
			if cells(parts[last])+2+cells(place) <= width-len(begin) {
				parts[last] += "  " + place
			} else {
				parts = append(parts, place)
			}
		}
		for _, part := range parts {
			drawn = append(drawn, begin+part)
			begin = spaces(len(begin))
		}
	}
	if left > 0 {
		drawn = append(drawn, fmt.Sprintf("%s  … %s", spaces(widest+2), plural(left, "more line")))
	}
	return drawn
}

// around chooses at most limit lines: faults and what is wrong, then the last line, then those that are nearest to these or to the end.
func around(lines []Line, limit int) []bool {
	shown := make([]bool, len(lines))
	distance := func(i int) int {
		least := len(lines) - 1 - i
		for j, line := range lines {
			if line.Fault || line.Wrong {
				least = min(least, max(i-j, j-i))
			}
		}
		return least
	}
	for count, near := 0, 0; near < len(lines) && count < limit; near++ {
		for i := range lines {
			if count < limit && distance(i) == near {
				shown[i] = true
				count++
			}
		}
	}
	return shown
}

func (t *terminal) notTried() {
	if len(t.report.NotTried) == 0 {
		return
	}
	t.line("")
	t.line(" NOT TRIED")
	widest := 0
	for _, one := range t.report.NotTried {
		widest = max(widest, cells(visible(one.Family)))
	}
	widest = min(widest, t.width/3)
	for i := range t.report.NotTried {
		one := &t.report.NotTried[i]
		text, count := one.subject()
		if count != "" {
			text += " (" + count + ")"
		}
		if one.Reason != "" {
			text += ": " + visible(one.Reason)
		}
		for j, line := range wrap(text, t.width-5-widest) {
			begin := pad(middle(visible(one.Family), widest), widest)
			if j > 0 {
				begin = spaces(widest)
			}
			t.line("   " + begin + "  " + line)
		}
	}
}

func (t *terminal) noEffect() {
	if len(t.report.NoEffect) > 0 {
		t.list("NO EFFECT SEEN", noEffectNote, t.report.NoEffect)
	}
}

func (t *terminal) blind() {
	if len(t.report.Blind) > 0 {
		t.list("NOT VISIBLE WITH SIMULATED PODS", "", t.report.Blind)
	}
}

// list lists texts below a title and, if there is one, a note.
func (t *terminal) list(title, note string, texts []string) {
	t.line("")
	t.line(" " + title)
	if note != "" {
		for _, line := range wrap(note, t.width-3) {
			t.line("   " + line)
		}
	}
	for _, text := range texts {
		for i, line := range wrap(visible(text), t.width-5) {
			begin := "   - "
			if i > 0 {
				begin = spaces(5)
			}
			t.line(begin + line)
		}
	}
}
