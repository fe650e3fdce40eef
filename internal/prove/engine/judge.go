// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// Severities.
const (
	high   = "high"
	medium = "medium"
	low    = "low"
)

// Observation is something that is wrong at the end of a step.
type Observation struct {
	Family   string
	Step     int
	Verdict  string
	Severity string
	Title    string
	Object   string
	Fields   []string
	Want     string
	Got      string
	// Done is what was done to the operator, if that is not all that the plan does.
	Done string
	// once means that only one of two undisturbed runs showed it.
	once bool
	// about is the change that was not carried out; empty if the observation is not about one.
	about string
	// Where holds the relevant lines, if the operator marks its writes: FILE:LINE and what is written
	// there.
	Where []string
}

// cause is the same for observations of one defect in different runs, and differs between defects.
func (o *Observation) cause() string {
	kind, _, _ := strings.Cut(o.Object, " ")
	fields := make([]string, 0, 1)
	for _, one := range o.Fields[:min(len(o.Fields), 1)] {
		fields = append(fields, inBrackets.ReplaceAllString(one, "[]"))
	}
	return strings.Join([]string{o.Family, o.Verdict, kind, strings.Join(fields, " "), cmp.Or(o.about, o.Title)}, "|")
}

var inBrackets = regexp.MustCompile(`\[[^\]]*\]`)

// withoutPause is the title of a loop that writes nothing.
const withoutPause = "The operator reconciles without a pause"

// healthOf returns problems of an operator that do not depend on the disturbance.
func (r *run) healthOf(step int, over rested) (wrong []*Observation) {
	panics, refused := r.activity.take()
	wrong = r.panicsOf(step, panics)
	for _, how := range r.exits {
		wrong = append(wrong, &Observation{Step: step, Verdict: "exit", Severity: high, Title: "The operator exits by itself", Want: "it keeps running", Got: how})
	}
	r.exits = nil
	seen := map[string]bool{}
	for _, one := range refused {
		title := "The operator's role does not allow what it does: " + one.Verb + " " + one.Resource.Resource
		if !seen[title] && !r.campaign.denied[title] {
			seen[title] = true
			wrong = append(wrong, &Observation{
				Step: step, Verdict: "refused-rights", Severity: high, Title: title, Object: one.Resource.Resource,
				Want: "the role allows it", Got: one.Message,
			})
		}
	}
	spins := r.activity.spins()
	switch {
	case over.busy && over.writes > 0:
		wrong = append(wrong, &Observation{
			Step: step, Verdict: "loop", Severity: high, Title: "The operator does not stop writing",
			Want: "no writes once the desired state is reached", Got: fmt.Sprintf("%d writes in the last quarter of %s", over.writes, r.campaign.o.Settling.Bound),
		})
	case spins != "" && r.campaign.spins:
		// It is a finding already.
	case spins != "":
		wrong = append(wrong, &Observation{
			Step: step, Verdict: "loop", Severity: medium, Title: withoutPause,
			Want: "no reconciles once there is nothing left to do, or few", Got: spins,
		})
	case over.busy:
		wrong = append(wrong, &Observation{
			Step: step, Verdict: "unsettled", Severity: medium, Title: "The operator does not come to rest",
			Want: "nothing left to do", Got: fmt.Sprintf("still busy after %s", r.campaign.o.Settling.Bound),
		})
	}
	return wrong
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// judge compares the end of a step with how it ends undisturbed. Counts are of the changes after a number; -1 for none.
func (r *run) judge(step int, over rested, changes int) (wrong []*Observation) {
	c := r.campaign
	want := c.reference[step]
	wrong = r.healthOf(step, over)
	found := r.deviations(step)
	wrong = append(wrong, c.differences(step, found)...)
	if changes >= 0 {
		wrong = append(wrong, c.countDifferences(step, want.counts, r.countsSince(changes))...)
	}
	if over.stuck && !want.rested.stuck && len(found) == 0 && !over.busy && !c.failsAsRestarted(over) {
		wrong = append(wrong, &Observation{Step: step, Verdict: "unsettled", Severity: low, Title: "The operator retries something without end", Want: "nothing left to do", Got: "it fails each time it reconciles"})
	}
	return wrong
}

// agrees reports whether the state equals the undisturbed state, apart from what the scenario ignores.
func (r *run) agrees(step, changes int) bool {
	c := r.campaign
	want := c.reference[step]
	return len(c.withoutIgnored(r.family, step, r.deviations(step))) == 0 &&
		(changes < 0 || len(c.relevant(r.family, c.countDifferences(step, want.counts, r.countsSince(changes)))) == 0)
}

// deviations returns the differences from the undisturbed state, without fields that the scenario ignores. An ignored field does not
// hide other fields of the same object.
func (r *run) deviations(step int) []compare.Difference {
	if !r.takesBack {
		return r.deviationsOf(step, r.shape())
	}
	r.seeSets()
	return r.deviationsOf(step, r.campaign.shapeOf(r.campaign.withoutPastJobs(step, r.world.State())))
}

func (r *run) deviationsOf(step int, shape compare.Shape) []compare.Difference {
	c := r.campaign
	want := c.reference[step].shape
	found := slices.DeleteFunc(c.mask.Differences(want, shape), isNote)
	if r.family == "input" || r.family == "unobserved" { // which take changes back
		found = c.withoutGrownVolumes(found)
	}
	found = c.withoutSuccessors(found, want, r.takesBack)
	if r.takesBack {
		found = slices.DeleteFunc(found, func(d compare.Difference) bool { return isTrace(r.setting, d, want) })
	}
	if r.family == "order" {
		found = slices.DeleteFunc(found, func(d compare.Difference) bool {
			return d.Path == "" && d.Got != "absent" && d.Got != "none of them" && c.keepsAlike(d.Object)
		})
	}
	return c.withoutIgnoredFields(r.family, step, found)
}

// isNote reports whether a difference is an annotation with the time at which something happened that does not happen undisturbed, or with
// the history of what happened. In a pod template, it is more than that.
func isNote(d compare.Difference) bool {
	return strings.HasPrefix(d.Path, "metadata.annotations.") && d.Want == "absent" && (d.Got == "(time)" || strings.HasSuffix(d.Path, "history"))
}

// isTrace reports whether a difference only shows that something was changed and changed back, such as the time of the last change in
// an annotation, or an older ConfigMap beside the one that is expected. The value itself is more than that.
func isTrace(s setting, d compare.Difference, want compare.Shape) bool {
	return isPast(d, want) && !s.lags(d.Want, d.Got)
}

// withoutPastJobs leaves out Jobs that have done their work, and their pods, if undisturbed runs do not have them: what ran for a change
// is not undone with it. After a deletion they are left behind.
func (c *campaign) withoutPastJobs(step int, state world.State) world.State {
	if c.o.Steps[step].Ends || c.o.Steps[step].Deletes {
		return state
	}
	want, rest := c.reference[step].shape, maps.Clone(state)
	for key, job := range state {
		name, _ := compare.Name(key, job)
		_, isWanted := want.Objects[name]
		if !isOver(key, job) || isWanted || want.Counts[name] > 0 || c.mask.HidesObject(name) {
			continue
		}
		maps.DeleteFunc(rest, func(other world.Key, object *unstructured.Unstructured) bool {
			return other == key || isOwnedBy(object, job)
		})
	}
	return rest
}

// withoutIgnored leaves out all differences that the scenario ignores.
func (c *campaign) withoutIgnored(family string, step int, found []compare.Difference) []compare.Difference {
	return slices.DeleteFunc(found, func(d compare.Difference) bool { return c.ignoresDifference(family, step, d) })
}

// withoutIgnoredFields leaves out the fields that the scenario ignores. Whether an object is there leads to other differences, such as
// in the status of its custom resource, so ignored objects stay until it is known which differences are consequences.
func (c *campaign) withoutIgnoredFields(family string, step int, found []compare.Difference) []compare.Difference {
	return slices.DeleteFunc(found, func(d compare.Difference) bool { return d.Path != "" && c.ignoresDifference(family, step, d) })
}

// ignoresDifference reports whether the scenario ignores one field of an object, or whether there is one.
func (c *campaign) ignoresDifference(family string, step int, d compare.Difference) bool {
	return len(c.relevant(family, c.differences(step, []compare.Difference{d}))) == 0
}

// differences turns differences into observations: one for each object, and none for consequences of others.
func (c *campaign) differences(step int, found []compare.Difference) (wrong []*Observation) {
	grave := slices.ContainsFunc(found, func(d compare.Difference) bool { return !d.IsStatus() })
	ends, deletes := c.o.Steps[step].Ends, c.o.Steps[step].Deletes
	byObject := map[string]*Observation{}
	for _, d := range innermost(found) {
		if grave && d.IsStatus() {
			continue
		}
		if known := byObject[d.Object]; known != nil {
			if len(known.Fields) < mostFields && d.Path != "" {
				known.Fields = append(known.Fields, d.Path)
			}
			continue
		}
		o := &Observation{Step: step, Object: d.Object, Verdict: "end-state", Severity: high, Want: d.Want, Got: d.Got}
		kind, _, _ := strings.Cut(d.Object, " ")
		if d.Path != "" {
			o.Fields = []string{d.Path}
			o.Want, o.Got = d.Path+" is "+d.Want, d.Path+" is "+d.Got
		}
		switch {
		case d.Path == "" && d.Got == "absent":
			o.Title = aKind(kind) + " is missing at the end"
		case d.Path == "" && d.Want == "absent" && d.Got != "present":
			o.Verdict, o.Title = "foreign", aKind(kind)+" that does not belong to the operator is gone"
		case d.Path == "" && (ends || deletes) && c.isSubject(d.Object):
			o.Verdict, o.Title = "deletion", "The deletion of a "+kind+" does not end"
		case d.Path == "" && ends:
			o.Verdict, o.Title = "leftovers", aKind(kind)+" is left behind after everything was deleted"
		case d.Path == "":
			o.Title = "The objects differ from the undisturbed run: " + kind
		case d.IsStatus():
			o.Verdict, o.Severity, o.Title = "status", medium, "The status of a "+kind+" differs from the undisturbed run"
		default:
			o.Title = aKind(kind) + " differs from the undisturbed run"
		}
		byObject[d.Object] = o
		wrong = append(wrong, o)
	}
	return wrong
}

const mostFields = 6

func (c *campaign) isSubject(object string) bool {
	return slices.ContainsFunc(c.o.Subjects, func(one *unstructured.Unstructured) bool { return object == nameOfObject(one) })
}

// countDifferences finds objects that were created or deleted more often than undisturbed.
func (c *campaign) countDifferences(step int, want, got map[string]bounds) (wrong []*Observation) {
	for name, g := range got {
		w := want[name]
		if c.mask.HidesObject(name) || c.own[name] {
			continue
		}
		kind, _, _ := strings.Cut(name, " ")
		switch {
		case g.deleted[1] > w.deleted[1] && g.created[1] > w.created[1]:
			wrong = append(wrong, &Observation{
				Step: step, Verdict: "counts", Severity: high, Object: name, Title: aKind(kind) + " is deleted and created again",
				Want: fmt.Sprintf("created %s, deleted %s", times(w.created[1]), times(w.deleted[1])), Got: fmt.Sprintf("created %s, deleted %s", times(g.created[1]), times(g.deleted[1])),
			})
		case g.created[1] > w.created[1] && !succeeds(name, want, got):
			wrong = append(wrong, &Observation{
				Step: step, Verdict: "counts", Severity: medium, Object: name, Title: aKind(kind) + " is created that an undisturbed run does not create",
				Want: "created " + times(w.created[1]), Got: "created " + times(g.created[1]),
			})
		}
	}
	return wrong
}

// deletions finds objects that the operator itself deleted more often than undisturbed.
func (r *run) deletions(step int) []*Observation {
	return r.deletionsBut(step, r.campaign.reference[step].deleted)
}

// mostDeleted returns how often something was deleted at most in one of several runs.
func mostDeleted(runs ...[]write) map[Moment]int {
	most := map[Moment]int{}
	for _, writes := range runs {
		moments := make([]seenMoment, 0, len(writes))
		for i := range writes {
			moments = append(moments, seenMoment{Moment: writes[i].Moment})
		}
		for m, count := range deletionsIn(moments, nil) {
			most[m] = max(most[m], count)
		}
	}
	return most
}

// deletionsBut finds objects that the operator itself deleted more often than it may.
func (r *run) deletionsBut(step int, want map[Moment]int) (wrong []*Observation) {
	uids, repeated := r.uidsOf()
	writes := slices.DeleteFunc(r.board.writes(), func(seen seenMoment) bool { return repeated[seen.id] })
	for m, got := range deletionsIn(writes, uids) {
		if got <= want[m] {
			continue
		}
		kind := r.campaign.kindOf(m)
		title := "The operator deletes a" + aKind(kind)[1:]
		if want[m] > 0 {
			title += " more often than in an undisturbed run"
		} else {
			title += " that it does not delete in an undisturbed run"
		}
		o := &Observation{
			Step: step, Verdict: "counts", Severity: high, Object: nameOf(kind, m.Namespace, m.Name), Title: title,
			Want: "deleted " + times(want[m]), Got: "deleted " + times(got),
		}
		for _, seen := range slices.Backward(writes) {
			last := seen.Moment
			if last.Nth = 0; last == m {
				o.Where = linesOf(r.board.sourceOf(seen.Moment), m.String())
				r.accuse(seen.id)
				break
			}
		}
		wrong = append(wrong, o)
	}
	return wrong
}

// kindOf is the kind of what is written, or its resource if undisturbed runs have no object of that kind.
func (c *campaign) kindOf(m Moment) string {
	for _, s := range c.reference {
		for key := range s.state {
			if key.Group == m.Group && key.Resource == m.Resource {
				return key.Kind
			}
		}
	}
	return m.Resource
}

// deletionsIn counts deletions. One of an object that is being deleted already does not count: an operator that does not see that yet
// may repeat it. UIDs of objects are by the ID of the request.
func deletionsIn(writes []seenMoment, uids map[uint64]string) map[Moment]int {
	type target struct {
		Moment
		uid string
	}
	counts, known := map[Moment]int{}, map[target]bool{}
	for _, seen := range writes {
		m := seen.Moment
		if m.Verb != "delete" && m.Verb != "deletecollection" {
			continue
		}
		m.Nth = 0
		one := target{m, uids[seen.id]}
		if !known[one] || one.uid == "" {
			counts[m]++
		}
		known[one] = true
	}
	return counts
}

// uidsOf returns the UIDs of the objects that were written, by the ID of the request, as far as they are known. Repeated are the
// requests to delete a collection that deleted nothing, or only what was being deleted already.
func (r *run) uidsOf() (uids map[uint64]string, repeated map[uint64]bool) {
	if r.lens == nil {
		return nil, nil
	}
	return writtenIn(r.events(0))
}

func writtenIn(events []*lens.Event) (uids map[uint64]string, repeated map[uint64]bool) {
	uids, repeated = map[uint64]string{}, map[uint64]bool{}
	gone := map[string]bool{}
	for _, e := range events {
		w := e.Request
		switch {
		case w == nil || !w.IsWrite():
		case w.Verb == "deletecollection":
			isNew := func(uid string) bool { return !gone[uid] }
			again := len(w.Deleted) > 0 && w.Items <= len(w.Deleted) && !slices.ContainsFunc(w.Deleted, isNew)
			repeated[w.ID] = again || w.Change != nil && w.Change.None
			for _, uid := range w.Deleted {
				gone[uid] = true
			}
		case w.Object != nil:
			uids[w.ID] = w.Object.UID
		}
	}
	return uids, repeated
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// aKind is the beginning of a sentence about one object of a kind.
func aKind(kind string) string {
	if strings.IndexAny(kind, "AEIO") == 0 {
		return "An " + kind
	}
	return "A " + kind
}
