// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"time"
)

// totals are counts of a controller since the recorder began.
type totals struct {
	reconciles, folded uint64
	// startup are the reconciles that nothing but the first list led to.
	startup     uint64
	causes      map[causeKind]uint64
	outcomes    map[Outcome]uint64
	writes      map[writeKind]uint64
	written     uint64
	noChange    uint64
	findings    map[FindingType]uint64
	userChanges uint64
	waited      time.Duration
	took        time.Duration
	waits       [len(waitBuckets) + 1]uint64
	// users holds the changes that were counted last, because one event can trigger reconciles of several
	// objects.
	users    [64]echoKey
	nextUser int
}

type causeKind struct {
	cause CauseType
	kind  string
}

type writeKind struct{ verb, kind string }

// waitBuckets are upper bounds in seconds.
var waitBuckets = [...]float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 60, 600}

// maxKinds bounds the labels of metrics; kinds beyond it are counted together, as otherKinds.
const (
	maxKinds   = 256
	otherKinds = "other"
)

func newTotals() totals {
	return totals{causes: map[causeKind]uint64{}, outcomes: map[Outcome]uint64{}, writes: map[writeKind]uint64{}, findings: map[FindingType]uint64{}}
}

// add counts a reconcile.
func (t *totals) add(p *pass) {
	record := p.record
	t.reconciles++
	t.folded += uint64(max(0, record.Folded-1))
	t.outcomes[record.Outcome]++
	t.waited += record.Waited
	t.took += record.Duration
	bucket, _ := slices.BinarySearch(waitBuckets[:], record.Waited.Seconds())
	t.waits[bucket]++
	startup := true
	for i, e := range p.events {
		cause := &record.Causes[i]
		startup = startup && cause.Type == Listed
		count(t.causes, kindOfCause(cause), causeKind{cause: cause.Type, kind: otherKinds})
		if p.isUserChange(cause, e) {
			t.countUser(echoKey{cause.Object.UID, cause.ResourceVersion})
		}
	}
	if startup {
		t.startup++
	}
	for i := range record.Findings {
		// A reconcile can be part of several loops.
		found := record.Findings[i].Type
		if !slices.ContainsFunc(record.Findings[:i], func(f Finding) bool { return f.Type == found }) {
			t.findings[found]++
		}
	}
}

func kindOfCause(cause *Cause) causeKind {
	if cause.Object == nil {
		return causeKind{cause: cause.Type}
	}
	return causeKind{cause.Type, cause.Object.Kind}
}

// wrote counts a write, also one that its record has no room for.
func (t *totals) wrote(w *Write) {
	t.written++
	if w.NoChange {
		t.noChange++
	}
	count(t.writes, writeKind{w.Verb, w.Object.Kind}, writeKind{w.Verb, otherKinds})
}

func count[key comparable](counts map[key]uint64, k, other key) {
	if _, known := counts[k]; !known && len(counts) >= maxKinds {
		k = other
	}
	counts[k]++
}

func (t *totals) countUser(change echoKey) {
	if slices.Contains(t.users[:], change) {
		return
	}
	t.users[t.nextUser] = change
	t.nextUser = (t.nextUser + 1) % len(t.users)
	t.userChanges++
}

// amplification is the average cost of a user's change.
type amplification struct{ reconciles, writes float64 }

// amplification is zero until a user changes something.
func (t *totals) amplification() amplification {
	if t.userChanges == 0 {
		return amplification{}
	}
	changes := float64(t.userChanges)
	return amplification{float64(t.reconciles-t.startup) / changes, float64(t.written) / changes}
}

// machines are the managers that belong to Kubernetes itself.
var machines = map[string]bool{
	"kube-controller-manager": true, "kube-scheduler": true, "kube-apiserver": true, "kubelet": true, "kwok": true, "kwok-controller": true,
	"k3s": true, "cloud-controller-manager": true,
}

// isUserChange reports whether an event is a change by a user and not the consequence of one.
// This is the case if no reconcile of this recorder wrote it, and if the reconciled object was
// created, its spec changed, its deletion started, or a writer that is not a controller changed
// another object.
func (p *pass) isUserChange(cause *Cause, e *trigger) bool {
	if cause.Object == nil || cause.Write != nil || cause.Repeated || cause.Type != Created && cause.Type != Updated && cause.Type != Deleted {
		return false
	}
	ours := p.controller.recorder.echoes.managers
	if len(cause.By) > 0 && !slices.ContainsFunc(cause.By, func(w Writer) bool { return !machines[w.Manager] && !ours[w.Manager] }) {
		return false
	}
	if p.isAbout(cause.Object) {
		return e.generation
	}
	if cause.Type != Updated || len(cause.By) == 0 {
		return false
	}
	return slices.ContainsFunc(cause.By, func(w Writer) bool { return !machines[w.Manager] && !ours[w.Manager] && w.Subresource != "status" })
}
