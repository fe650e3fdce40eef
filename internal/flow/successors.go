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
	p.contests.dropOver(p.now)
	name := describe(object, object.GetName())
	return p.contests.noteWithin(within, types.UID(string(p.owner.GetUID())+"/"+name), name, fields, fields, p.now)
}

// dropOver drops the contests that are over. No deletion of a child tells that one about a name is.
func (c *contests) dropOver(now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for child, known := range c.children {
		if known.isOver(now) {
			delete(c.children, child)
		}
	}
}
