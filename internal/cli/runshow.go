// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/tree"
)

// show is how a run shows what happens.
type show interface {
	// update shows how things are now.
	update(tree.Snapshot)
	// wake receives something when there is something to show although nothing has changed.
	wake() <-chan time.Time
	// end shows how things are for the last time.
	end(tree.Snapshot)
}

func (r *fleetRun) newShow(began time.Time) show {
	return &plainShow{run: r, seen: map[types.UID]string{}, began: began}
}

// plainShow writes a line whenever an object of the fleet becomes ready or ceases to be, or the reason changes.
type plainShow struct {
	run   *fleetRun
	began time.Time
	seen  map[types.UID]string
}

func (p *plainShow) update(s tree.Snapshot) {
	now := p.run.Now()
	there := map[types.UID]bool{}
	for _, o := range s.Fleet {
		there[o.UID] = true
		key := fmt.Sprint(o.Status, o.Reason)
		if p.seen[o.UID] == key {
			continue
		}
		p.seen[o.UID] = key
		fmt.Fprintf(p.run.Err, "%s  %s %s: %s\n", now.Format("15:04:05"), o.Kind, p.name(o), o.Why())
	}
	for uid := range p.seen {
		if !there[uid] {
			delete(p.seen, uid)
		}
	}
}

func (p *plainShow) name(o tree.Object) string {
	if o.Namespace == p.run.target.namespace {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

func (p *plainShow) wake() <-chan time.Time { return nil }

func (p *plainShow) end(tree.Snapshot) {}
