// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"time"

	"github.com/opdock/opdock/internal/tree"
)

// View controls how a snapshot is shown.
type View struct {
	// Title names the cluster.
	Title string
	// Namespace is the default namespace, which is not shown for each object.
	Namespace string
	// Address is the address of the page, or empty if there is none. It is never cut, because part of an address is
	// useless.
	Address string
	// Hints say what the user can do, most important first. Hints that do not fit are left out.
	Hints []string
	// Findings are sentences about problems. They come first.
	Findings []string
	// Began is when the run began.
	Began  time.Time
	Colour bool

	// unfolded shows the whole tree, from line offset. Lines keeps offset within the tree, and stores in page how
	// many lines of the tree are visible.
	unfolded     bool
	offset, page int
}

const (
	// maxEvents is the maximum number of events.
	maxEvents = 8
	// maxMessage is the maximum number of lines of a message.
	maxMessage = 3
	// gap is the number of blanks between columns.
	gap = 2
	// narrow is the minimum width that has room for ages.
	narrow = 60
)

// Lines returns the content of a window. It has no more lines and no wider lines than fit.
func (v *View) Lines(s tree.Snapshot, now time.Time, width, height int) []string {
	if width < 1 || height < 1 {
		return nil
	}
	// Leave room for header, footer and the blank lines beside them, if they fit.
	room := height - 1
	blank := height >= 10
	address := v.addressLines(width, height)
	footer := len(address) > 0 || height >= 5
	findings := v.findings(room-len(address)-1, width)
	room -= len(findings)
	if blank {
		room -= 2
	}
	if footer {
		room -= max(1, len(address))
	}
	body, position := v.tree(s, room-v.leastEvents(s, room, width), now, width)
	events := v.events(s, room-len(body), now, width)

	lines := append([]line{v.header(s, now, width)}, findings...)
	if blank {
		lines = append(lines, nil)
	}
	lines = append(append(lines, body...), events...)
	if most := height - max(1, len(address)); footer && len(lines) > most {
		lines = lines[:most]
	}
	if blank && len(lines) < height-max(1, len(address)) {
		lines = append(lines, nil)
	}
	if footer {
		lines = append(lines, v.footer(address, position, width)...)
	}
	result := make([]string, 0, height)
	for _, l := range lines[:min(len(lines), height)] {
		result = append(result, l.cut(width).render(v.Colour))
	}
	return result
}

func (v *View) header(s tree.Snapshot, now time.Time, width int) line {
	ready := 0
	worst := tree.Good
	for _, o := range s.Fleet {
		switch {
		case o.State == tree.Good:
			ready++
		case o.State == tree.Bad || worst != tree.Bad:
			worst = o.State
		}
	}
	right := line{{colourOf(worst), fmt.Sprintf("%d of %d ready", ready, len(s.Fleet))}, {dim, "  " + tree.Age(now.Sub(v.Began)) + " "}}
	left := line{{bold, " opdock run"}, {normal, "  " + v.Title}, {dim, "  namespace " + v.Namespace}}
	return append(left.cut(width-right.width()-gap).pad(width-right.width()), right...)
}

// tree returns the visible lines of the tree, and the position if not all of them are visible.
func (v *View) tree(s tree.Snapshot, room int, now time.Time, width int) (lines []line, position string) {
	if !v.unfolded {
		return v.fit(s.Roots, room, now, width), ""
	}
	blocks := make([][]row, len(s.Roots))
	for i, root := range s.Roots {
		blocks[i] = rowsOf(root, v.Namespace, open)
	}
	lines = v.draw(blocks, now, width)
	v.page = max(room, 1)
	v.offset = min(v.offset, max(len(lines)-v.page, 0))
	if len(lines) <= v.page {
		return lines, ""
	}
	last := v.offset + v.page
	return lines[v.offset:last], fmt.Sprintf("  lines %d to %d of %d", v.offset+1, last, len(lines))
}

// folding is the order in which parts of the tree are folded until it fits.
var folding = []struct {
	healthy bool
	to      fold
}{{true, closed}, {false, trimmed}, {false, closed}}

// fit folds the tree from below until it fits.
func (v *View) fit(roots []*tree.Branch, room int, now time.Time, width int) []line {
	if len(roots) == 0 {
		return []line{{{dim, " No objects of the fleet yet."}}}
	}
	blocks := make([][]row, len(roots))
	total := 0
	for i, root := range roots {
		blocks[i] = rowsOf(root, v.Namespace, open)
		total += rowLines(blocks[i], width)
	}
	for _, step := range folding {
		for i := len(roots) - 1; i >= 0 && total > room; i-- {
			if roots[i].Healthy() == step.healthy {
				total -= rowLines(blocks[i], width)
				blocks[i] = rowsOf(roots[i], v.Namespace, step.to)
				total += rowLines(blocks[i], width)
			}
		}
	}
	if total <= room {
		return v.draw(blocks, now, width)
	}
	// There are still too many rows. Show one line per root, bad ones first, and count the rest.
	var kept []row
	for _, state := range []tree.State{tree.Bad, tree.Busy, tree.Paused, tree.Good, tree.Plain} {
		for i, block := range blocks {
			if block[0].state == state {
				kept = append(kept, block[0])
				if state == tree.Bad {
					kept[len(kept)-1].detail = roots[i].Message
				}
			}
		}
	}
	if len(kept) <= room {
		return v.draw([][]row{kept}, now, width)
	}
	room = max(room, 1)
	more := line{{dim, fmt.Sprintf(" … %d more; make the window larger to see them", len(kept)-room+1)}}
	return append(v.draw([][]row{kept[:room-1]}, now, width), more)
}

// rowLines returns how many lines the rows need.
func rowLines(rows []row, width int) int {
	total := 0
	for _, r := range rows {
		total += max(1, len(r.messageLines(width)))
	}
	return total
}

func (v *View) draw(blocks [][]row, now time.Time, width int) []line {
	widest := 0
	for _, block := range blocks {
		for _, r := range block {
			if r.message == "" {
				widest = max(widest, r.title().width())
			}
		}
	}
	widest = min(widest, max(width*11/20, 24))
	var lines []line
	for _, block := range blocks {
		for _, r := range block {
			if r.message != "" {
				for _, text := range r.messageLines(width) {
					lines = append(lines, line{{dim, " " + r.indent}, {colourOf(r.state), text}})
				}
				continue
			}
			lines = append(lines, r.draw(widest, now, width))
		}
	}
	return lines
}

func (r row) messageLines(width int) []string {
	return wrap(tree.Clean(r.message), width-columns(r.indent)-2, maxMessage)
}

func (r row) title() line {
	nameStyle := normal
	if r.root {
		nameStyle = bold
	}
	title := line{{dim, " " + r.indent}, {colourOf(r.state), mark(r.state) + " "}}
	if r.kind != "" {
		title = append(title, span{dim, r.kind + " "})
	}
	return append(title, span{nameStyle, tree.Clean(r.name)})
}

func (r row) draw(titleWidth int, now time.Time, width int) line {
	age := ""
	if width >= narrow && !r.created.IsZero() {
		age = tree.Age(now.Sub(r.created))
	}
	const ageWidth = 6
	room := width - titleWidth - gap
	if width >= narrow {
		room -= ageWidth + 1
	}
	status := line{{colourOf(r.state), tree.Clean(r.status)}}
	if r.status != "" && r.detail != "" {
		status = append(status, span{normal, "  "})
	}
	status = append(status, span{dim, fitDetail(tree.Clean(r.detail), room-status.width())})
	result := r.title().cut(titleWidth).pad(titleWidth + gap)
	result = append(result, status.cut(max(room, 0)).pad(room)...)
	if age != "" {
		result = append(result, span{dim, fmt.Sprintf(" %*s", ageWidth, age)})
	}
	return result
}

// leastEvents returns how many lines to reserve for events. Events have priority over unfolding the tree, but not
// over messages of bad objects.
func (v *View) leastEvents(s tree.Snapshot, room, width int) int {
	if len(s.Events) == 0 || room < 12 {
		return 0
	}
	needed := 0
	for _, root := range s.Roots {
		needed += rowLines(rowsOf(root, v.Namespace, closed), width)
	}
	const heading = 2
	free := min(heading+min(len(s.Events), 3, room/5), room-needed)
	if free <= heading {
		return 0
	}
	return free
}

func (v *View) events(s tree.Snapshot, room int, now time.Time, width int) []line {
	count := min(len(s.Events), maxEvents, room-2)
	if count < 1 {
		return nil
	}
	lines := []line{nil, {{bold, " Latest events"}}}
	about := 0
	for _, e := range s.Events[:count] {
		about = max(about, columns(aboutOf(e)))
	}
	about = min(about, max(width/3, 16))
	for _, e := range s.Events[:count] {
		state := normal
		if e.Warning {
			state = yellow
		}
		note := tree.Clean(e.Note)
		if e.Count > 1 {
			note = fmt.Sprintf("(%d times) %s", e.Count, note)
		}
		l := line{{dim, fmt.Sprintf(" %5s ", tree.Age(now.Sub(e.Time)))}}
		l = append(l, line{{normal, aboutOf(e)}}.cut(about).pad(about+gap)...)
		lines = append(lines, append(l, span{state, tree.Clean(e.Reason)}, span{dim, "  " + note}))
	}
	return lines
}

func aboutOf(e tree.Event) string { return tree.Clean(kindName(e.Kind) + " " + e.Name) }

func mark(s tree.State) string {
	switch s {
	case tree.Good:
		return "✓"
	case tree.Busy:
		return "●"
	case tree.Bad:
		return "✗"
	case tree.Paused:
		return "‖"
	default:
		return "·"
	}
}

func colourOf(s tree.State) style {
	switch s {
	case tree.Good:
		return green
	case tree.Busy, tree.Paused:
		return yellow
	case tree.Bad:
		return red
	default:
		return normal
	}
}
