// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MayReplace is MayRestore for a child that is deleted because of its drift, and recreated under the same name. The
// contest is about the name, because the next child has another UID. within is how soon the next child must differ in
// the same fields to count as a reaction.
func (p *Pass) MayReplace(object client.Object, fields string, within time.Duration) error {
	name := describe(object, object.GetName())
	write := repetition{child: types.UID(string(p.owner.GetUID()) + "/" + name), signature: fields}
	if wait, rounds := p.contests.wait(write, p.now); wait > 0 {
		return contested(name, fields, wait, rounds)
	}
	p.contests.count(write, within, p.now)
	return nil
}
