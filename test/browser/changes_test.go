// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/test/browser/chromium"
	"github.com/opdock/opdock/why"
)

// A change that no reconcile followed from is shown beside those of the custom resource that its object belongs to, and
// connected with the write that made it.
func TestChangesThatLedToNothing(t *testing.T) {
	world, changes := demo.New(30, time.Now()), page.NewChanges()
	tell(t, world, "fail shop")
	deployment := why.Object{Kind: "Deployment", Group: "apps", Version: "v1", Namespace: demo.Namespace, Name: "shop"}
	records := world.Endpoint.Records()
	made := records[1].Writes[0]
	changes.Add(page.Change{Type: why.Updated, Object: deployment, ResourceVersion: made.ResourceVersion, Seen: made.At.Add(time.Millisecond),
		Changes: []why.Change{{Path: "spec.replicas", Old: "1", New: "2"}}, Changed: 1})
	p := look(t, start(t, page.Options{Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings, Changes: changes}).URL(), chromium.Options{})
	// One echo of the write, and those of the retry and the timer.
	await(t, p, "globalThis.opdock && opdock.timeline.painter.drawn.changes === 1 && opdock.timeline.painter.drawn.echoes === 3")
	await(t, p, "opdock.timeline.rows.length === 1")
	// Once a reconcile follows from it after all, it is that one's.
	do(t, p, `opdock.takeRecord("record", { ...opdock.store.passes[0].raw, id: 900, causes: [{ type: "updated", resourceVersion: "`+made.ResourceVersion+`",
	  object: opdock.store.passes[1].raw.writes[0].object, seen: new Date().toISOString() }] }); opdock.wake()`)
	await(t, p, "opdock.timeline.painter.drawn.changes === 0")
}

// A page that is opened after a lot has happened has missed nothing. One whose connection breaks off is told only what it
// does not know.
func TestAPageComesBack(t *testing.T) {
	world, changes := demo.New(30, time.Now()), page.NewChanges()
	add := func(name string, count int) {
		for i := range count {
			changes.Add(page.Change{Type: why.Created, Object: why.Object{Kind: "Pod", Namespace: demo.Namespace, Name: name}, ResourceVersion: strconv.Itoa(i), Seen: time.Now()})
		}
	}
	add("early", 4300)
	handler, err := page.New(page.Options{Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings, Changes: changes})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	p := look(t, server.URL, chromium.Options{})
	await(t, p, "globalThis.opdock && opdock.store.loose.length > 1000 && opdock.forest.nodes.size > 0 && opdock.objects.waiting.length === 0")
	if missed := get[int](t, p, "opdock.store.lost"); missed != 0 {
		t.Errorf("a page that was just opened has missed %d messages", missed)
	}
	p.Allow("ERR_")
	do(t, p, `globalThis.told = []; const take = opdock.takeObjects;
	  opdock.takeObjects = function (name, message) { told.push([name, message]); take.call(this, name, message) }`)
	server.CloseClientConnections()
	await(t, p, "opdock.objects.state === 'lost'")
	add("late", 2)
	world.Grow("newcomer", time.Now())
	await(t, p, "opdock.objects.state === 'live' && document.getElementById('tree').innerText.includes('newcomer')")
	await(t, p, "told.some(([name, m]) => m.changes?.some((c) => c.object.name === 'late'))")
	if again := get[int](t, p, "told.filter(([name, m]) => m.whole || m.changes?.some((c) => c.object.name === 'early')).length"); again > 0 {
		t.Errorf("%d messages tell what the page knows", again)
	}
	if missed := get[int](t, p, "opdock.store.lost"); missed != 0 {
		t.Errorf("%d messages are said to be missed", missed)
	}
}

// Without a recorder, the changes are all there is to see.
func TestChangesAlone(t *testing.T) {
	world, changes := demo.New(30, time.Now()), page.NewChanges()
	p := look(t, start(t, page.Options{Tree: world.Model, Changes: changes}).URL(), chromium.Options{})
	await(t, p, "!document.getElementById('timeline-empty').hidden")
	changes.Add(page.Change{Type: why.Updated, Object: why.Object{Kind: "Deployment", Group: "apps", Namespace: demo.Namespace, Name: "cart"}, ResourceVersion: "7",
		Seen: time.Now(), Changes: []why.Change{{Path: "spec.replicas", Old: "1", New: "2"}}, By: []why.Writer{{Manager: "kubectl"}}})
	await(t, p, "document.getElementById('timeline-empty').hidden && opdock.timeline.painter.drawn.changes === 1")
	if row := get[string](t, p, "opdock.timeline.rows[0].object.kind + ' ' + opdock.timeline.rows[0].object.name"); row != "AppService cart" {
		t.Errorf("it is shown beside %s", row)
	}
}
