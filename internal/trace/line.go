// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/why"
)

// The levels of detail.
const (
	// ShowWrites shows writes, errors, and what the lens could not see.
	ShowWrites Detail = iota
	// ShowReads shows all requests.
	ShowReads
	// ShowAll also shows the events of watches.
	ShowAll
)

// Detail is the level of detail.
type Detail int

// Wants reports whether an event is shown at this level.
func (d Detail) Wants(e *lens.Event) bool {
	switch {
	case e.Request != nil && e.Request.Open:
		return d >= ShowReads
	case e.Request != nil && e.Request.Verb == "watch":
		return d >= ShowAll || e.Request.Refused()
	case e.Request != nil:
		return d >= ShowReads || isNews(e.Request)
	case e.Delivery != nil:
		return d >= ShowAll && e.Delivery.Type != "BOOKMARK"
	case e.Read != nil:
		return false
	case e.Reconcile != nil:
		return d >= ShowAll || e.Reconcile.Ended && e.Reconcile.Error != ""
	}
	return true
}

// isNews reports whether a request is worth a line. A read that finds nothing is normal for a
// controller, and a lease is renewed every two seconds.
func isNews(r *lens.Request) bool {
	switch {
	case r.Resource.Group == "coordination.k8s.io" && !r.Refused():
		return false
	case r.Status == http.StatusNotFound && !r.IsWrite():
		return false
	}
	return r.IsWrite() || r.Refused() || r.Fault != ""
}

const (
	placeWidth  = 44
	fieldsShown = 3
)

// Line describes an event in one line. Times count from since.
func Line(e *lens.Event, since time.Time) string {
	at := fmt.Sprintf("%9.3fs", max(0, e.At.Sub(since).Seconds()))
	switch {
	case e.Request != nil:
		return at + "  " + requestLine(e.Request)
	case e.Delivery != nil:
		return at + "  " + deliveryLine(e.Delivery)
	case e.Reconcile != nil:
		return at + "  " + reconcileLine(e.Reconcile)
	case e.Process != nil:
		return at + "  " + processLine(e.Process)
	case e.Lost != nil:
		return fmt.Sprintf("%s  %d events are missing here: %s", at, e.Lost.Events, e.Lost.Reason)
	}
	return at
}

func requestLine(r *lens.Request) string {
	line := fmt.Sprintf("%-16s %-*s %s %7s", r.Verb, placeWidth, Place(r), statusOf(r), shortDuration(r.Duration))
	if r.Open {
		line = fmt.Sprintf("%-16s %-*s %s    open", r.Verb, placeWidth, Place(r), statusOf(r))
	}
	var notes []string
	switch {
	case r.Refused():
		notes = append(notes, cmp.Or(r.Message, r.Reason, r.Error))
	case r.Change != nil && r.Change.None:
		notes = append(notes, "no change")
	case r.Change != nil:
		notes = append(notes, Fields(r.Change)...)
	}
	if r.DryRun {
		notes = append(notes, "dry run")
	}
	if r.Fault != "" {
		notes = append(notes, "fault: "+r.Fault)
	}
	if r.Verb == "list" && r.Status == http.StatusOK && r.Undecoded == "" {
		notes = append(notes, fmt.Sprintf("%d items", r.Items))
	}
	return strings.TrimRight(line+"  "+strings.Join(notes, "; "), " ")
}

func statusOf(r *lens.Request) string {
	if r.Status == 0 {
		return "---"
	}
	return fmt.Sprintf("%3d", r.Status)
}

// Place names the object of a request, as kubectl does.
func Place(r *lens.Request) string {
	if r.Path != "" {
		return r.Path
	}
	return placeOf(r.Resource)
}

func placeOf(r lens.Resource) string {
	text := r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	switch {
	case r.Namespace != "" && r.Name != "":
		return text + " " + r.Namespace + "/" + r.Name
	case r.Namespace != "":
		return text + " in " + r.Namespace
	case r.Name != "":
		return text + " " + r.Name
	}
	return text
}

// Fields describes the changes, as far as there is room.
func Fields(change *lens.Change) (said []string) {
	for i := range change.Fields {
		if i == fieldsShown {
			break
		}
		c := &change.Fields[i]
		switch {
		case c.Old == "":
			said = append(said, fmt.Sprintf("%s: added %s", c.Path, c.New))
		case c.New == "":
			said = append(said, fmt.Sprintf("%s: removed %s", c.Path, c.Old))
		default:
			said = append(said, fmt.Sprintf("%s: %s → %s", c.Path, c.Old, c.New))
		}
	}
	switch more := change.Count() - len(said); {
	case more > 0 && len(said) == 0:
		said = append(said, "changed, but too large to compare in full")
	case more > 0:
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return said
}

func deliveryLine(d *lens.Delivery) string {
	place := d.Resource
	if d.Object != nil {
		place.Namespace, place.Name = d.Object.Namespace, d.Object.Name
	}
	line := fmt.Sprintf("%-16s %-*s", "< "+strings.ToLower(d.Type), placeWidth, placeOf(place))
	var notes []string
	if d.Initial {
		notes = append(notes, "initial")
	}
	if d.Write != 0 {
		notes = append(notes, "its own write")
	}
	if d.Change != nil {
		notes = append(notes, Fields(d.Change)...)
		if by := writers(d.Change.By); by != "" && d.Write == 0 {
			notes = append(notes, "by "+by)
		}
	}
	if d.Fault != "" {
		notes = append(notes, "fault: "+d.Fault)
	}
	return strings.TrimRight(line+"  "+strings.Join(notes, "; "), " ")
}

func writers(by []why.Writer) string {
	names := make([]string, len(by))
	for i := range by {
		names[i] = by[i].Manager
	}
	return strings.Join(names, ", ")
}

func reconcileLine(r *lens.Reconcile) string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	if !r.Ended {
		return fmt.Sprintf("%-16s %s %s", "reconcile", r.Controller, name)
	}
	line := fmt.Sprintf("%-16s %-*s     %7s", "reconciled", placeWidth, r.Controller+" "+name, shortDuration(r.Duration))
	switch {
	case r.Panicked:
		line += "  panic: " + r.Error
	case r.Error != "":
		line += "  error: " + r.Error
	case r.RequeueAfter > 0:
		line += "  again in " + r.RequeueAfter.String()
	}
	return line
}

func processLine(p *lens.Process) string {
	switch {
	case p.Started && p.Identity != "":
		return "started as " + p.Identity
	case p.Started:
		return "started"
	}
	return "the program " + p.How
}

func shortDuration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
