// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

const (
	// youngest is the minimum age of a pod before it is replaced because it has ended or drifted. Otherwise, a pod that
	// ends at once, or that another controller changes at once, would be replaced in a hot loop.
	youngest = 10 * time.Second
	// terminationSlack is how long the end of a pod may be overdue before it is reported.
	terminationSlack = 30 * time.Second
)

// world is the input of the planner.
type world struct {
	settings
	members []*member
	// revisions by their hashes; update and current are two of them, or the same.
	revisions       map[string]*revision
	update, current *revision
	now             time.Time
	// truce is when the first correction of a pod that has to wait is due; zero if none has to. Set by markContested.
	truce time.Time
}

// verb is the kind of an action.
type verb string

const (
	create verb = "create"
	remove verb = "delete"
	renew  verb = "update in place"
	label  verb = "label"
	mend   verb = "restore in place"
)

// action is one thing to do to one pod.
type action struct {
	verb    verb
	ordinal int
	// member is the pod; nil if it is to be created.
	member *member
	// revision is the revision that the pod is created from or changed to, if any.
	revision *revision
	// why is for people, where it is not obvious.
	why string
	// drifted means that the pod is deleted because of its drift.
	drifted bool
}

// plan is what to do now, and when to look again even if nothing happens; zero if only an event can matter.
type plan struct {
	actions []action
	wake    time.Time
}

// planner works out a plan.
type planner struct {
	world
	plan
	byOrdinal map[int]*member
	// unavailable is how many of the wanted pods are not available, or will not be after the actions so far.
	unavailable int
}

// newPlan returns the next step towards the desired pods.
func newPlan(w world) plan {
	p := &planner{world: w, byOrdinal: make(map[int]*member, len(w.members))}
	p.wakeAt(w.truce)
	for _, m := range w.members {
		p.byOrdinal[m.ordinal] = m
	}
	p.scaleDown()
	candidates := p.keepUp()
	p.rollOut(candidates)
	return p.plan
}

// scaleDown deletes pods that are too many, from the highest number down.
func (p *planner) scaleDown() {
	for _, m := range p.descending() {
		if m.ordinal < p.replicas {
			return
		}
		if !m.terminating {
			p.do(action{verb: remove, ordinal: m.ordinal, member: m, why: "scaled down"})
		}
		p.watchTermination(m)
	}
}

// keepUp ensures that each desired pod exists and works. It returns the pods that do.
func (p *planner) keepUp() (sound []*member) {
	for ordinal := range p.replicas {
		m := p.byOrdinal[ordinal]
		if m == nil {
			p.unavailable++
			p.do(action{verb: create, ordinal: ordinal, revision: p.revisionFor(ordinal)})
			continue
		}
		if is, at := m.available(p.minReady, p.now); !is {
			p.unavailable++
			p.wakeAt(at)
		}
		if m.terminating {
			p.watchTermination(m)
			continue
		}
		if why, replace := p.unsound(m); replace {
			p.do(action{verb: remove, ordinal: ordinal, member: m, why: why})
			continue
		}
		// If its labels are contested, the update may be what ends that, and the rest of the pod is corrected all the same.
		if m.drift.ofMetadata() && (!m.metadataContested || !p.outdated(m)) {
			p.do(action{verb: label, ordinal: ordinal, member: m})
		}
		if !m.ended && (!m.drift.ofMetadata() || m.metadataContested) {
			sound = append(sound, m)
		}
	}
	return sound
}

// unsound reports whether a pod must be replaced regardless of its revision, and why.
func (p *planner) unsound(m *member) (why string, replace bool) {
	switch {
	case m.ended:
		if p.tooYoung(m) {
			return "", false
		}
		return "it has ended: " + cmp.Or(m.pod.Status.Reason, string(m.pod.Status.Phase)), true
	case !m.ready:
		due := m.deadline(p.deadline, p.now)
		if p.now.Before(due) {
			p.wakeAt(due)
			return "", false
		}
		return fmt.Sprintf("it has not been ready for %v", p.deadline), true
	default:
		return "", false
	}
}

// tooYoung reports whether a pod must not be replaced yet.
func (p *planner) tooYoung(m *member) bool {
	due := m.pod.CreationTimestamp.Add(youngest)
	p.wakeAt(due)
	return p.now.Before(due)
}

// rollOut updates pods of other revisions, and corrects drift. Pods that are not ready serve no requests and are
// updated at once; the others within maxUnavailable. A correction that has to wait makes no pod unavailable; it is planned
// so that the status gives the reason.
func (p *planner) rollOut(sound []*member) {
	slices.Reverse(sound)
	budget := p.maxUnavailable - p.unavailable
	for _, m := range sound {
		if !p.outdated(m) && !m.drift.ofSpec() {
			continue
		}
		next := p.toUpdate(m)
		if next.drifted && p.tooYoung(m) {
			continue
		}
		if m.ready && (!m.specContested || p.outdated(m)) {
			if budget <= 0 {
				continue
			}
			budget--
		}
		p.do(next)
	}
}

// toUpdate is what brings a pod to its revision: a change of its images if that is enough, and another pod otherwise.
func (p *planner) toUpdate(m *member) action {
	a := action{verb: remove, ordinal: m.ordinal, member: m, why: "another revision"}
	if !p.outdated(m) {
		a.why, a.drifted = m.drift.text(), true
	}
	if !p.inPlace || m.drift != nil && len(m.drift.lasting) > 0 {
		return a
	}
	if !p.outdated(m) {
		return action{verb: mend, ordinal: m.ordinal, member: m, revision: p.revisions[m.hash]}
	}
	if sameButImages(p.revisions[m.hash], p.update) && hasContainersOf(m.pod, p.update) {
		return action{verb: renew, ordinal: m.ordinal, member: m, revision: p.update}
	}
	return a
}

// hasContainersOf reports whether a pod has all containers of a revision. Admission may have removed one, and then only
// another pod can follow the revision.
func hasContainersOf(pod *corev1.Pod, r *revision) bool {
	return !slices.ContainsFunc(r.template.Spec.Containers, func(wanted sharedv1.Container) bool {
		return !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == wanted.Name })
	})
}

// revisionFor returns the revision of a new pod: below the partition, the one from before the update.
func (p *planner) revisionFor(ordinal int) *revision {
	if !p.onDelete && ordinal < p.partition {
		return p.current
	}
	return p.update
}

func (p *planner) watchTermination(m *member) {
	if m.terminating {
		p.wakeAt(overdueAt(m))
	}
}

// overdueAt returns the time from which the deletion of a pod is overdue.
func overdueAt(m *member) time.Time { return m.pod.DeletionTimestamp.Add(terminationSlack) }

func (p *planner) do(a action) { p.actions = append(p.actions, a) }

// wakeAt requests another reconcile at a future time.
func (p *planner) wakeAt(at time.Time) {
	if at.After(p.now) && (p.wake.IsZero() || at.Before(p.wake)) {
		p.wake = at
	}
}

func (p *planner) descending() []*member {
	sorted := p.ascending()
	slices.Reverse(sorted)
	return sorted
}

func (w *world) ascending() []*member {
	return slices.SortedFunc(slices.Values(w.members), func(a, b *member) int { return cmp.Compare(a.ordinal, b.ordinal) })
}

// unknown reports whether a pod follows no known revision, so nothing tells whether it is as it was created.
func (w *world) unknown(m *member) bool { return m.hash != w.update.hash && w.revisions[m.hash] == nil }

// outdated reports whether a pod still has to be updated.
func (w *world) outdated(m *member) bool {
	return !w.onDelete && m.ordinal >= w.partition && m.hash != w.update.hash
}
