// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demo simulates a busy fleet: a tree of objects, and records of reconciles like those of a recorder. The
// tests of the page and the measurement of its frame rate use it, and you can view it without a cluster.
package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/tree"
	"github.com/opdock/opdock/why"
)

// objectsPerApp is the number of objects of an application, including itself, without its pods.
const objectsPerApp = 4

// Namespace is where all of it is.
const Namespace = "default"

// World is a fleet that does not exist.
type World struct {
	// Model is its tree.
	Model *tree.Model
	// Endpoint serves its records like a recorder.
	Endpoint *Endpoint
	// Traffic holds the requests and watch events of its operator.
	Traffic *page.Traffic

	mutex   sync.Mutex
	apps    []*app
	random  *rand.Rand
	version int
	record  uint64
	pending []pending
}

// app is an AppService and what belongs to it.
type app struct {
	name     string
	replicas int
	image    int
	pods     int
	last     uint64 // its last record
}

type pending struct {
	at     time.Time
	record why.Record
}

var firstNames = []string{"shop", "cart", "search", "billing", "media", "inbox", "ledger", "maps", "notify", "orders"}

// New returns a world with about this many objects.
func New(objects int, now time.Time) *World {
	w := &World{Model: tree.NewModel(), Endpoint: newEndpoint(), Traffic: page.NewTraffic(), random: rand.New(rand.NewPCG(1, 2)), version: 1000} //nolint:gosec // a made-up world
	for made := 0; made < objects; {
		i := len(w.apps)
		name := firstNames[i%len(firstNames)]
		if round := i / len(firstNames); round > 0 {
			name += "-" + strconv.Itoa(round)
		}
		a := &app{name: name, replicas: 1 + i%4, image: 1}
		a.pods = min(a.replicas, max(0, objects-made-objectsPerApp))
		w.apps = append(w.apps, a)
		w.plant(a, now)
		made += objectsPerApp + a.pods
	}
	return w
}

func uid(kind, name string) types.UID { return types.UID("demo-" + kind + "-" + name) }

// plant puts an application and all below it into the tree.
func (w *World) plant(a *app, now time.Time) {
	created := now.Add(-time.Hour)
	set := func(group, kind, name string, owner types.UID, state tree.State, status, detail string) {
		o := tree.Object{
			Group: group, Kind: kind, Namespace: Namespace, Name: name, UID: uid(kind, name), Created: created, Generation: 1,
			State: state, Status: status, Detail: detail, Fleet: owner == "",
		}
		if owner != "" {
			o.Owners = []types.UID{owner}
		}
		if kind == kindApp || kind == kindDeployment {
			o.Conditions = conditions(state, created)
		}
		w.Model.Set(o)
	}
	root, replicaSet := uid(kindApp, a.name), a.name+"-7d9f6b5c4"
	set(groupApp, kindApp, a.name, "", tree.Good, "Ready", fmt.Sprintf("size %d, available %d", a.replicas, a.replicas))
	set("apps", kindDeployment, a.name, root, tree.Good, fmt.Sprintf("%d/%d available", a.replicas, a.replicas), "")
	set("", "Service", a.name, root, tree.Plain, "ClusterIP 80", "at 10.96.0.10")
	set("apps", "ReplicaSet", replicaSet, uid(kindDeployment, a.name), tree.Good, fmt.Sprintf("%d/%d ready", a.replicas, a.replicas), "")
	for i := range a.pods {
		set("", "Pod", fmt.Sprintf("%s-%c2xkq", replicaSet, 'a'+i), uid("ReplicaSet", replicaSet), tree.Good, "Running", "on node-0")
	}
}

func conditions(state tree.State, since time.Time) []tree.Condition {
	if state == tree.Good {
		return []tree.Condition{
			{Type: "Ready", Status: "True", Reason: "Available", Message: "all replicas are available", Since: since},
			{Type: "Reconciling", Status: "False", Reason: "Settled", Since: since},
		}
	}
	return []tree.Condition{
		{Type: "Ready", Status: "False", Reason: "Progressing", Message: "waiting for the Deployment", Since: since},
		{Type: "Reconciling", Status: "True", Reason: "Progressing", Since: since},
	}
}

// touch lets an application's object be busy or good.
func (w *World) touch(a *app, state tree.State, now time.Time) {
	status := "Ready"
	if state != tree.Good {
		status = "Reconciling"
	}
	w.Model.Set(tree.Object{
		Group: groupApp, Kind: kindApp, Namespace: Namespace, Name: a.name, UID: uid(kindApp, a.name), Created: now.Add(-time.Hour).Truncate(time.Hour),
		Generation: 1, State: state, Status: status, Detail: fmt.Sprintf("size %d, available %d", a.replicas, a.replicas), Fleet: true,
		Conditions: conditions(state, now),
	})
}

// Names are the names of the applications.
func (w *World) Names() []string {
	names := make([]string, 0, len(w.apps))
	for _, a := range w.apps {
		names = append(names, a.name)
	}
	return names
}

// Grow adds an application.
func (w *World) Grow(name string, now time.Time) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	a := &app{name: name, replicas: 1}
	w.apps = append(w.apps, a)
	w.plant(a, now)
}

// Run produces this many events a second, until the context ends.
func (w *World) Run(ctx context.Context, eventsPerSecond int) {
	const step = 20 * time.Millisecond
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	began, told := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			w.mutex.Lock()
			for due := int(now.Sub(began).Seconds() * float64(eventsPerSecond)); told < due; {
				told += w.happen(now)
			}
			w.deliver(now)
			w.mutex.Unlock()
		}
	}
}

// happen starts a story and returns its number of events.
func (w *World) happen(now time.Time) int {
	a := w.apps[w.random.IntN(len(w.apps))]
	if len(w.apps) > 3 && w.random.IntN(3) > 0 {
		a = w.apps[w.random.IntN(len(w.apps)/3)] // some are busier than others
	}
	var story []why.Record
	switch chance := w.random.IntN(100); {
	case chance < 35:
		story = w.scale(a, now)
	case chance < 55:
		story = w.release(a, now)
	case chance < 80:
		story = w.resync(a, now)
	case chance < 90:
		story = w.fail(a, now)
	default:
		story = w.quarrel(a, now)
	}
	w.touch(a, tree.Busy, now)
	events := 0
	for _, record := range story {
		events += record.Folded
		w.pending = append(w.pending, pending{record.Start.Add(record.Duration), record})
	}
	return events
}

// deliver emits the reconciles that have ended.
func (w *World) deliver(now time.Time) {
	var later []pending
	for _, p := range w.pending {
		if p.at.After(now) {
			later = append(later, p)
			continue
		}
		w.Endpoint.add(p.record)
		w.send(&p.record)
		if a := w.find(p.record.Object.Name); a != nil && a.last == p.record.ID {
			w.touch(a, tree.Good, now)
		}
	}
	w.pending = later
}

func (w *World) find(name string) *app {
	for _, a := range w.apps {
		if a.name == name {
			return a
		}
	}
	return nil
}
