// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"path"
	"slices"
	"strings"
)

// mostWriters is how many writes of an object are named.
const mostWriters = 2

// locate names the lines of the operator that an observation is about: the line that sent the disturbed
// write, and the lines that write the wrong object.
func (r *run) locate(p *Plan, o *Observation) {
	if p.At != nil {
		o.Where = append(o.Where, linesOf(r.board.sourceOf(*p.At), p.At.String()+", which is disturbed")...)
	}
	for _, line := range r.campaign.writersOf(o) {
		if !slices.ContainsFunc(o.Where, func(there string) bool { return placeOf(there) == placeOf(line) }) {
			o.Where = append(o.Where, line)
		}
	}
}

// linesOf returns the lines that send writes: FILE:LINE and a text. Callers from other packages follow.
func linesOf(source []string, text string) (lines []string) {
	for i, place := range source {
		if i > 0 {
			text = "calls it"
		}
		lines = append(lines, place+" "+text)
	}
	return lines
}

func placeOf(line string) string {
	place, _, _ := strings.Cut(line, " ")
	return place
}

// writersOf returns the lines that write an object undisturbed, in the step that an observation is about or the last one before it
// that has any. A status has other lines than the rest of an object.
func (c *campaign) writersOf(o *Observation) (lines []string) {
	ofStatus := o.Verdict == "status" || len(o.Fields) > 0 && strings.HasPrefix(o.Fields[0], "status")
	for step := min(o.Step, len(c.reference)-1); step >= 0; step-- {
		writes := 0
		for i := range c.reference[step].writes {
			w := &c.reference[step].writes[i]
			if len(w.source) == 0 || writes == mostWriters || (w.Subresource == "status") != ofStatus || !w.isAbout(o.Object) {
				continue
			}
			if slices.ContainsFunc(lines, func(there string) bool { return placeOf(there) == w.source[0] }) {
				continue
			}
			lines, writes = append(lines, linesOf(w.source, w.String())...), writes+1
		}
		if writes > 0 {
			return lines
		}
	}
	return nil
}

// isAbout reports whether a write is to an object, which has its name from the state.
func (w *write) isAbout(object string) bool {
	return w.object != "" && object == w.object+" "+path.Join(w.Namespace, w.Name)
}
