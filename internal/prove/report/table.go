// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// table writes families × verdicts. If that is wider than the terminal, the verdicts of a family share one column.
func (t *terminal) table() {
	if len(t.report.Families) == 0 {
		return
	}
	rows := t.report.rows(t.report.columns())
	widths := columnWidths(rows)
	total := 1
	for _, w := range widths {
		total += w + 2
	}
	if total > t.width {
		rows = t.report.joined()
		widths = columnWidths(rows)
	}
	t.line("")
	for i, row := range rows {
		if i == 1 || i == len(rows)-1 {
			t.line(" " + rule(widths, t.width-1))
		}
		t.row(row, widths, total > t.width)
	}
}

// row writes a row: names to the left, numbers to the right. If the last column is text, it is wrapped.
func (t *terminal) row(row []string, widths []int, text bool) {
	columns := []string{" " + pad(row[0], widths[0])}
	rest := row[1:]
	if text {
		rest = row[1 : len(row)-1]
	}
	for i, cell := range rest {
		columns = append(columns, spaces(widths[i+1]-cells(cell))+cell)
	}
	begin := strings.Join(columns, "  ")
	if !text {
		t.line(begin)
		return
	}
	for _, line := range wrapList(row[len(row)-1], max(t.width-cells(begin)-2, 12)) {
		t.line(begin + "  " + line)
		begin = spaces(cells(begin))
	}
}

// wrapList wraps a list between its parts only.
func wrapList(text string, limit int) []string {
	var lines []string
	line := ""
	for part := range strings.SplitSeq(text, ", ") {
		part = middle(part, limit-1)
		switch {
		case line == "":
			line = part
		case cells(line)+2+cells(part) < limit:
			line += ", " + part
		default:
			lines = append(lines, line+",")
			line = part
		}
	}
	return append(lines, line)
}

// nameWidth is how wide the name of a family or a verdict is at most. All that are known are shorter.
const nameWidth = 18

// rows returns the table with one column for each verdict: heading, families, total.
func (r *Report) rows(verdicts []string) [][]string {
	t := r.Totals()
	heading := []string{"FAMILY", "RUNS", "CLEAN"}
	for _, verdict := range verdicts {
		heading = append(heading, strings.ToUpper(middle(visible(verdict), nameWidth)))
	}
	total := []string{"total", ran(t.Ran, t.Planned), number(t.Clean)}
	sums := make([]int, len(verdicts))
	rows := [][]string{heading}
	for _, family := range r.Families {
		row := []string{middle(visible(family.Name), nameWidth), ran(family.Ran, family.Planned), number(family.Clean)}
		for i, verdict := range verdicts {
			row = append(row, number(family.Verdicts[verdict]))
			sums[i] += family.Verdicts[verdict]
		}
		rows = append(rows, row)
	}
	for _, sum := range sums {
		total = append(total, number(sum))
	}
	rows = append(rows, total)
	optional := func(title string, sum int, of func(Family) int) {
		if sum == 0 {
			return
		}
		rows[0] = append(rows[0], title)
		for i, family := range r.Families {
			rows[i+1] = append(rows[i+1], number(of(family)))
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], number(sum))
	}
	optional("FLAKY", t.FlakyRuns, func(f Family) int { return f.Flaky })
	optional("NOT JUDGED", t.Failed, func(f Family) int { return f.Failed })
	return rows
}

// joined returns the table with all verdicts of a family in one column.
func (r *Report) joined() [][]string {
	wide := r.rows(r.columns())
	narrow := make([][]string, 0, len(wide))
	for i, row := range wide {
		if i == 0 {
			narrow = append(narrow, []string{row[0], row[1], row[2], "VERDICTS"})
			continue
		}
		var parts []string
		for j := 3; j < len(row); j++ {
			if row[j] != none {
				parts = append(parts, row[j]+" "+strings.ToLower(wide[0][j]))
			}
		}
		if len(parts) == 0 {
			parts = []string{none}
		}
		narrow = append(narrow, []string{row[0], row[1], row[2], strings.Join(parts, ", ")})
	}
	return narrow
}

// none stands for zero: the table is about what is not.
const none = "·"

func number(n int) string {
	if n == 0 {
		return none
	}
	return strconv.Itoa(n)
}

// ran returns how many of the planned runs were run.
func ran(done, planned int) string {
	if done < planned {
		return fmt.Sprintf("%d of %d", done, planned)
	}
	return number(done)
}

func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], cells(cell))
		}
	}
	return widths
}

func rule(widths []int, limit int) string {
	n := 2 * (len(widths) - 1)
	for _, w := range widths {
		n += w
	}
	return strings.Repeat("─", min(n, limit))
}

func spaces(n int) string { return strings.Repeat(" ", max(n, 0)) }

func pad(text string, to int) string { return text + spaces(to-cells(text)) }

// listed joins names; many are counted.
func listed(names []string) string {
	const most = 8
	shown := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, visible(name))
	}
	text := strings.Join(shown, ", ")
	if len(names) > most {
		text += fmt.Sprintf(", … %d more", len(names)-most)
	}
	return text
}

// block returns a value as at most limit lines. A line of the value that would take more than half of them is shortened
// in its middle; of many lines, those in the middle are left out.
func block(text string, width, limit int) []string {
	var lines []string
	for _, line := range visibleLines(text) {
		lines = append(lines, wrap(middle(line, max(width*limit/2, 8)), width)...)
	}
	if len(lines) <= limit {
		return lines
	}
	head, tail := limit/2, (limit-1)/2
	left := plural(len(lines)-head-tail, "more line")
	return slices.Concat(lines[:head], []string{"… " + left}, lines[len(lines)-tail:])
}
