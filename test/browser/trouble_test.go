// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/internal/tree"
	"github.com/opdock/opdock/test/browser/chromium"
)

func TestThereIsNothingYet(t *testing.T) {
	world := demo.New(0, time.Now())
	p := look(t, start(t, page.Options{Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings}).URL(), chromium.Options{})
	await(t, p, "!document.getElementById('timeline-empty').hidden && !document.getElementById('tree-empty').hidden")
	expect(t, p, "timeline-empty", "Nothing has happened yet")
	expect(t, p, "tree-empty", "No objects yet")
	expect(t, p, "connection", "Live")
}

func TestNothingIsRecorded(t *testing.T) {
	world := demo.New(30, time.Now())
	p := look(t, start(t, page.Options{Tree: world.Model}).URL(), chromium.Options{})
	await(t, p, "!document.getElementById('timeline-empty').hidden")
	expect(t, p, "timeline-empty", "No reconciles are recorded here")
	expect(t, p, "connection", "Live")
	expect(t, p, "tree", "shop")
}

// A server that ends is missed; its replacement is another server, whose records start from the beginning.
func TestTheConnectionIsLostAndFound(t *testing.T) {
	world := demo.New(30, time.Now())
	tell(t, world, "scale shop", "scale cart")
	first := start(t, page.Options{Title: "first", Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings})
	p := look(t, first.URL(), chromium.Options{})
	await(t, p, "opdock.view.passes.length === 8")
	p.Allow("ERR_") // what a browser says about a server that is not there
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, p, "document.getElementById('connection').dataset.state === 'lost'")
	expect(t, p, "connection", "Connection lost")
	expect(t, p, "tree", "shop") // what is known is still shown, and looks like the past that it is
	await(t, p, "getComputedStyle(document.querySelector('.panes')).filter === 'grayscale(1)'")
	other := demo.New(10, time.Now())
	tell(t, other, "resync shop")
	second, err := page.Start(page.Options{Title: "second", Tree: other.Model, Records: other.Endpoint, Findings: other.Endpoint.Findings, Address: strings.TrimPrefix(first.URL(), "http://")})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	await(t, p, "document.getElementById('connection').dataset.state === 'live' && opdock.view.passes.length === 1")
	expect(t, p, "title", "second")
	await(t, p, "getComputedStyle(document.querySelector('.panes')).filter === 'none'")
}

// What does not fit into the browser's memory is dropped, and that is said.
func TestTheBrowserKeepsOnlySoMuch(t *testing.T) {
	world := demo.New(30, time.Now())
	p := lookAt(t, world, "scale shop")
	do(t, p, `const record = opdock.store.passes[0].raw;
	  for (let i = 0; i < 12000; i++) opdock.takeRecord("record", { ...record, id: 1000 + i });
	  opdock.wake()`)
	await(t, p, "!document.getElementById('dropped').hidden")
	if kept := get[int](t, p, "opdock.store.passes.length"); kept > 11_000 {
		t.Errorf("%d reconciles are kept", kept)
	}
	await(t, p, "opdock.view.passes.length === opdock.store.passes.length")
	if got := get[int](t, p, "opdock.store.passes.length + opdock.store.dropped"); got != 12_004 {
		t.Errorf("%d are kept or said to be dropped", got)
	}
	expect(t, p, "dropped", "older reconciles dropped")
	if left := get[int](t, p, "opdock.store.byId.size - opdock.store.passes.length"); left != 0 {
		t.Errorf("%d that were dropped are still known", left)
	}
}

// Names and messages come from objects that any client may have created.
func TestNamesAreNoMarkup(t *testing.T) {
	const nasty = `<img src=x onerror=document.title='broken'>"'&`
	world := demo.New(0, time.Now())
	world.Grow(nasty, time.Now())
	world.Model.Set(tree.Object{UID: "nasty", Kind: nasty, Name: nasty, Fleet: true, State: tree.Bad, Status: nasty, Message: nasty,
		Conditions: []tree.Condition{{Type: nasty, Status: nasty, Reason: nasty, Message: nasty}}})
	if err := world.Tell("scale", nasty, time.Now()); err != nil {
		t.Fatal(err)
	}
	p := look(t, start(t, page.Options{Title: nasty, Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings}).URL(), chromium.Options{})
	await(t, p, "opdock.view.passes.length === 4 && opdock.forest.roots.length === 2")
	do(t, p, "opdock.choose(opdock.forest.nodes.get('nasty')); opdock.choose(null); opdock.open(opdock.view.passes[0])")
	expect(t, p, "details", "<img src=x")
	expect(t, p, "tree", "<img src=x")
	if n := get[int](t, p, "document.querySelectorAll('img').length"); n != 1 { // the logo
		t.Errorf("there are %d pictures", n)
	}
	if title := get[string](t, p, "document.title"); !strings.HasPrefix(title, "opdock") {
		t.Errorf("the title is %q", title)
	}
}

// Records may lack what most of them have, and clocks may have jumped.
func TestStrangeRecordsAreShown(t *testing.T) {
	p := lookAt(t, demo.New(10, time.Now()), "scale shop")
	for i, record := range []string{
		`{controller: "c", object: {name: "x"}, causes: [], folded: 0, start: "2026-01-01T00:00:00Z", duration: 0, written: 0, outcome: "succeeded"}`,
		`{controller: "c", object: {name: "x"}, causes: null, folded: 3, start: "2026-01-01T00:00:00Z", duration: -5, written: 2, outcome: "unheard-of"}`,
		`{controller: "c", object: {name: "x", kind: "K"}, causes: [{type: "new-type", seen: "2099-01-01T00:00:00Z"}], folded: 1, start: "2026-01-01T00:00:01Z", duration: 1e15, written: 0, outcome: "panicked"}`,
		`{controller: "c", object: {name: "x"}, causes: [{type: "updated", object: {name: "y"}, seen: "0001-01-01T00:00:00Z", write: {record: 99999, index: 7}}], folded: 1, start: "2026-01-01T00:00:02Z", duration: 1, written: 0, outcome: "failed", findings: [{type: "new", message: "m"}]}`,
	} {
		do(t, p, fmt.Sprintf("opdock.takeRecord('record', {id: %d, ...%s}); opdock.open(opdock.store.passes.at(-1))", 500+i, record))
		await(t, p, fmt.Sprintf("document.getElementById('details').innerText.includes('#%d')", 500+i))
	}
	for _, scale := range []string{"time", "steps"} {
		do(t, p, "opdock.controls.scale('"+scale+"'); opdock.timeline.reveal(opdock.store.passes.at(-1)); opdock.timeline.touch()")
		await(t, p, "opdock.timeline.painter.drawn.passes > 0")
	}
}
