// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/tree"
)

// findings returns the lines of the findings. They use up to a third of the room. The last line counts those that do
// not fit.
func (v *View) findings(room, width int) []line {
	most := room / 3
	var lines []line
	for i, text := range v.Findings {
		wrapped := wrap(tree.Clean(text), width-4, 2)
		left := most - len(lines)
		if i < len(v.Findings)-1 {
			left-- // keep a line to count the others
		}
		if len(wrapped) > left {
			if most > len(lines) {
				lines = append(lines, line{{yellow, fmt.Sprintf(" ! %s not shown here", tree.Plural(len(v.Findings)-i, "finding"))}})
			}
			break
		}
		for j, text := range wrapped {
			mark := "   "
			if j == 0 {
				mark = " ! "
			}
			lines = append(lines, line{{yellow, mark + text}})
		}
	}
	return lines
}

// addressLines returns the page's address, split over several lines if the window is narrower.
func (v *View) addressLines(width, height int) []string {
	if v.Address == "" {
		return nil
	}
	var lines []string
	for rest := []rune(v.Address); len(rest) > 0; {
		count := min(len(rest), width)
		lines = append(lines, string(rest[:count]))
		rest = rest[count:]
	}
	if len(lines) > height-2 {
		return nil // no room; part of an address is useless
	}
	return lines
}

// footer returns the last lines: the address, as many hints as fit beside it, and the position in the tree.
func (v *View) footer(address []string, position string, width int) []line {
	if len(address) > 1 {
		var lines []line
		for _, text := range address {
			lines = append(lines, line{{normal, text}})
		}
		return lines
	}
	last := line{{dim, " "}}
	if len(address) == 1 {
		last = line{{normal, address[0]}}
		if last.width() < width {
			last[0].text = " " + address[0]
		}
		if last.width()+columns(position) > width {
			position = ""
		}
	}
	for i, hint := range v.Hints {
		separator := " · "
		if i == 0 && len(address) == 0 {
			separator = ""
		}
		more := slices.Concat(last, line{{dim, separator + hint}})
		if more.width()+columns(position) <= width || i == 0 && len(address) == 0 {
			last = more
		}
	}
	last = last.cut(width - columns(position)).pad(width - columns(position))
	return []line{append(last, span{dim, position})}
}

// fitDetail shortens a detail with an address if it is too long. It drops the first parts, and drops the address only
// if that does not fit alone. The result may still be cut.
func fitDetail(detail string, room int) string {
	parts := strings.Split(detail, ", ")
	at := slices.IndexFunc(parts, func(part string) bool { return strings.Contains(part, "://") })
	if at < 0 || columns(detail) <= room {
		return detail
	}
	if columns(parts[at]) > room {
		return strings.Join(slices.Delete(parts, at, at+1), ", ")
	}
	for len(parts) > 1 && columns(strings.Join(parts, ", ")) > room {
		drop := 0
		if strings.Contains(parts[0], "://") {
			drop = len(parts) - 1
		}
		parts = slices.Delete(parts, drop, drop+1)
	}
	return strings.Join(parts, ", ")
}
