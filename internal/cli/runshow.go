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
	// end leaves the terminal as it was.
	end()
}

func (r *fleetRun) newShow(began time.Time) show {
	if r.ErrSize != nil {
		return r.newLiveShow(began)
	}
	return &plainShow{run: r, seen: map[types.UID]tree.Object{}}
}

// plainShow writes a line whenever an object of the fleet becomes ready or ceases to be, or the reason changes.
type plainShow struct {
	run  *fleetRun
	seen map[types.UID]tree.Object
}

func (p *plainShow) update(s tree.Snapshot) {
	there := map[types.UID]bool{}
	for _, o := range s.Fleet {
		there[o.UID] = true
		before, known := p.seen[o.UID]
		p.seen[o.UID] = o
		if !known || before.Status != o.Status || before.Reason != o.Reason {
			p.say(o, o.Why())
		}
	}
	for uid, o := range p.seen {
		if !there[uid] {
			delete(p.seen, uid)
			p.say(o, "Gone")
		}
	}
}

func (p *plainShow) say(o tree.Object, what string) {
	fmt.Fprintf(p.run.Err, "%s  %s %s: %s\n", p.run.Now().Format(time.TimeOnly), o.Kind, p.name(o), what)
}

func (p *plainShow) name(o tree.Object) string {
	if o.Namespace == p.run.target.namespace {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

func (p *plainShow) wake() <-chan time.Time { return nil }

func (p *plainShow) end() {}

// refreshInterval is how often a terminal is drawn again although nothing has changed: ages go on, and windows get
// another size.
const refreshInterval = 250 * time.Millisecond

// liveShow draws the tree on a terminal.
type liveShow struct {
	run    *fleetRun
	view   tree.View
	screen *tree.Screen
	ticker *time.Ticker
}

func (r *fleetRun) newLiveShow(began time.Time) *liveShow {
	footer := "Ctrl-C ends"
	if r.target.ours {
		footer += " · try: " + r.command("kubectl", r.name, "get all")
	}
	return &liveShow{
		run: r, screen: tree.OpenScreen(r.Err), ticker: time.NewTicker(refreshInterval),
		view: tree.View{
			Title: r.target.title, Namespace: r.target.namespace, Began: began, Colour: r.Colour,
			Footer: footer + " · log: " + r.target.logPath,
		},
	}
}

func (l *liveShow) update(s tree.Snapshot) {
	width, height := l.run.ErrSize()
	// The last column stays free: a terminal that has just filled it would take it for part of what follows.
	l.screen.Draw(l.view.Lines(s, l.run.Now(), width-1, height), width, height)
}

func (l *liveShow) wake() <-chan time.Time { return l.ticker.C }

func (l *liveShow) end() {
	l.ticker.Stop()
	l.screen.Close()
}
