// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/internal/run"
	"github.com/opdock/opdock/internal/tree"
	"github.com/opdock/opdock/internal/tree/terminal"
)

// show is how a run shows what happens.
type show interface {
	run.Screen
	// end leaves the terminal as it was.
	end()
}

func (r *fleetRun) newShow(began time.Time) show {
	if r.ErrSize != nil {
		return r.newLiveShow(began)
	}
	p := &plainShow{run: r, seen: map[types.UID]tree.Object{}, ticker: time.NewTicker(findingsInterval)}
	p.findings = findings.Reporter{Tracker: r.session.Findings, Say: func(sentence string) {
		fmt.Fprintf(r.Err, "%s  %s\n", r.Now().Format(time.TimeOnly), sentence)
	}}
	return p
}

// plainShow writes a line whenever an object of the fleet becomes ready or ceases to be, or the reason changes.
type plainShow struct {
	run      *fleetRun
	seen     map[types.UID]tree.Object
	findings findings.Reporter
	ticker   *time.Ticker
}

// findingsInterval is the interval at which findings are checked; they also end without events.
const findingsInterval = time.Second

func (p *plainShow) Update(s tree.Snapshot) {
	p.findings.Report(p.run.Now())
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
	if o.Namespace == p.run.session.Target.Namespace {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

func (p *plainShow) Wake() <-chan time.Time { return p.ticker.C }

func (p *plainShow) Typed() <-chan string { return nil }

func (p *plainShow) Press(string) bool { return false }

func (p *plainShow) end() { p.ticker.Stop() }

// refreshInterval is how often a terminal is drawn again although nothing has changed: ages go on, and windows get
// another size.
const refreshInterval = 250 * time.Millisecond

// liveShow draws the tree on a terminal.
type liveShow struct {
	run     *fleetRun
	view    *terminal.View
	screen  *terminal.Screen
	ticker  *time.Ticker
	keys    <-chan string
	release func()
}

func (r *fleetRun) newLiveShow(began time.Time) *liveShow {
	l := &liveShow{run: r, ticker: time.NewTicker(refreshInterval), release: func() {}}
	hints := []string{"Ctrl-C ends"}
	if r.Keys != nil {
		// Without a keyboard it is still worth looking at.
		if keys, release, err := r.Keys(); err == nil {
			l.keys, l.release = keys, release
			hints = []string{"q ends", "space unfolds", "↑↓ scroll"}
		}
	}
	if r.session.Target.Ours {
		hints = append(hints, r.Command("kubectl", r.Name, "get all"))
	}
	l.view = &terminal.View{
		Title: r.session.Target.Title, Namespace: r.session.Target.Namespace, Began: began, Colour: r.Colour,
		Address: r.session.PageURL, Hints: append(hints, "log: "+r.session.LogPath),
	}
	l.screen = terminal.OpenScreen(r.Err)
	return l
}

func (l *liveShow) Update(s tree.Snapshot) {
	width, height := l.run.ErrSize()
	l.view.Findings = nil
	for _, found := range l.run.session.Findings.At(l.run.Now()) {
		l.view.Findings = append(l.view.Findings, found.Sentence)
	}
	// The last column stays free: a terminal that has just filled it would take it for part of what follows.
	l.screen.Draw(l.view.Lines(s, l.run.Now(), width-1, height), width, height)
}

func (l *liveShow) Wake() <-chan time.Time { return l.ticker.C }

func (l *liveShow) Typed() <-chan string { return l.keys }

func (l *liveShow) Press(input string) (quit bool) {
	for _, action := range terminal.Actions(input) {
		if action == terminal.Quit {
			return true
		}
		l.view.Do(action)
	}
	return false
}

func (l *liveShow) end() {
	l.ticker.Stop()
	l.screen.Close()
	l.release()
}
