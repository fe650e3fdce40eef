// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MayRestore must be called before a child that is not applied is corrected. The error is the outcome if the
// correction has to wait because another writer reverts it again and again. The function is to be called when it succeeded.
func (p *Pass) MayRestore(object client.Object, fields string) (restored func(), err error) {
	return p.mayWrite(object, repetition{child: object.GetUID(), signature: fields}, contestWithin)
}

// MayReplace is MayRestore for a child that is deleted because of its drift, and recreated under the same name. The
// contest is about the name, because the next child has another UID. within is how soon the next child must differ in
// the same fields to count as a reaction.
func (p *Pass) MayReplace(object client.Object, fields string, within time.Duration) (replaced func(), err error) {
	name := describe(object, object.GetName())
	return p.mayWrite(object, repetition{child: types.UID(string(p.owner.GetUID()) + "/" + name), signature: fields}, within)
}

func (p *Pass) mayWrite(object client.Object, write repetition, within time.Duration) (written func(), err error) {
	if wait, rounds := p.contests.wait(write, p.now); wait > 0 {
		return nil, contested(describe(object, object.GetName()), write.signature, wait, rounds)
	}
	return func() { p.contests.count(write, within, p.now) }, nil
}
