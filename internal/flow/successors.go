// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MayRestore must be called before a child that is not applied is corrected. The error is the outcome if the
// correction has to wait because another writer reverts it again and again. The function is to be called when it succeeded.
// Each of the fields is a text about one that differs.
func (p *Pass) MayRestore(object client.Object, fields []string) (restored func(), err error) {
	return p.MayReplace(object, fields, contestWithin)
}

// MayReplace is MayRestore for a child that is deleted because of its drift, and recreated under the same name. within is
// how soon the next child must differ in the same fields to count as a reaction.
func (p *Pass) MayReplace(object client.Object, fields []string, within time.Duration) (replaced func(), err error) {
	write := repetition{childOf: p.childOf(object), signature: strings.Join(fields, "\n")}
	return p.mayWrite(write, strings.Join(fields, ", "), within)
}

// mayWrite decides whether a correction has to wait. The fields are for the message.
func (p *Pass) mayWrite(write repetition, fields string, within time.Duration) (written func(), err error) {
	if wait, rounds := p.contests.wait(write, p.now); wait > 0 {
		return nil, contested(write.child, fields, wait, rounds)
	}
	return func() { p.contests.count(write, within, p.now) }, nil
}

// childOf names a child in contests. They are about names, because a child that is recreated has another UID.
func (p *Pass) childOf(object client.Object) childOf {
	return childOf{p.owner.GetUID(), describe(object, object.GetName())}
}

// UnlessHidden must be called with the answer to a write of a child that is not applied. The error is the outcome if
// admission has changed the label by which the caches select it.
func (p *Pass) UnlessHidden(object client.Object) error { return p.unlessHidden(object) }

// IsHidden reports whether admission changes that label of children like this one, so that no read must wait for a write.
func (p *Pass) IsHidden(object client.Object) bool { return p.own.isHidden(object) }

// Contested returns how long the correction of a child in these fields has to wait; 0 if it need not.
func (p *Pass) Contested(object client.Object, fields []string) time.Duration {
	wait, _ := p.contests.wait(repetition{childOf: p.childOf(object), signature: strings.Join(fields, "\n")}, p.now)
	return wait
}
