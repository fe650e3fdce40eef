// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/test/browser/chromium"
	"github.com/opdock/opdock/why"
)

// process serves what a made-up operator records, in a process of its own as far as the page can tell.
func process(t *testing.T, world *demo.World) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.StripPrefix("/why", world.Endpoint))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

func addressOf(server *httptest.Server) string { return strings.TrimPrefix(server.URL, "http://") }

// What an operator has recorded stays when it is restarted, and the page says that it was.
func TestAnOperatorIsRestarted(t *testing.T) {
	world, next := demo.New(10, time.Now()), demo.New(10, time.Now())
	tell(t, world, "scale shop")
	relay := page.NewRelay()
	t.Cleanup(relay.End)
	before := process(t, world)
	relay.Begin(addressOf(before))
	relay.Works()
	p := look(t, start(t, page.Options{Title: "made-up operator", Tree: world.Model, Operator: relay}).URL(), chromium.Options{})
	await(t, p, "globalThis.opdock && opdock.view.passes.length === 4 && opdock.operator.state === 'recording'")
	await(t, p, "document.getElementById('dropped').hidden")
	before.CloseClientConnections()
	before.Close()
	relay.End()
	await(t, p, "document.getElementById('dropped').innerText.includes('the operator has ended')")
	tell(t, next, "scale shop")
	relay.Begin(addressOf(process(t, next)))
	await(t, p, "opdock.view.passes.length === 8 && opdock.timeline.rows.length === 1")
	await(t, p, "document.getElementById('dropped').innerText.startsWith('the operator was restarted at')")
	await(t, p, "opdock.timeline.painter.drawn.restarts === 1")
	// What a write of the second process led to belongs to that process.
	await(t, p, "opdock.store.passes.slice(4).every((p) => p.id > 4 && p.causes.every((c) => !c.raw.write || c.raw.write.record > 4))")
	expect(t, p, "connection", "Live")
}

// Where there is nothing to be seen of reconciles, the page says why not and what to do about it.
func TestAnOperatorDoesNotRecord(t *testing.T) {
	world, changes, relay := demo.New(10, time.Now()), page.NewChanges(), page.NewRelay()
	t.Cleanup(relay.End)
	relay.Begin("")
	p := look(t, start(t, page.Options{Tree: world.Model, Operator: relay, Changes: changes}).URL(), chromium.Options{})
	await(t, p, "globalThis.opdock && document.getElementById('dropped').innerText.includes('the operator starts')")
	relay.Works()
	await(t, p, "!document.getElementById('list-empty').hidden && !document.getElementById('timeline-empty').hidden")
	expect(t, p, "timeline-empty", "This operator does not use why: tree and changes only")
	expect(t, p, "list-empty", "docs/why.md", "why.New(why.Options{}).NewClient", "why.ControllerManagedBy(mgr, why.RecorderOf(mgr))")
	expect(t, p, "connection", "Live")
	changes.Add(page.Change{Type: why.Updated, Object: why.Object{Kind: "Deployment", Group: "apps", Namespace: demo.Namespace, Name: "cart"}, ResourceVersion: "7",
		Seen: time.Now(), Changes: []why.Change{{Path: "spec.replicas", Old: "1", New: "2"}}, By: []why.Writer{{Manager: "kubectl"}}})
	await(t, p, "document.getElementById('timeline-empty').hidden && opdock.timeline.painter.drawn.changes === 1")
	expect(t, p, "list-empty", "This operator does not use why")
	// The user adds the lines.
	tell(t, world, "scale shop")
	relay.Begin(addressOf(process(t, world)))
	await(t, p, "opdock.view.passes.length === 4 && document.getElementById('list-empty').hidden && !document.getElementById('list').hidden")
}

// A page for which there is no room says so, and goes on when there is.
func TestTooManyPagesAreOpen(t *testing.T) {
	world := demo.New(10, time.Now())
	address := start(t, page.Options{Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings, MaxStreams: 1}).URL()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/api/stream", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	other, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	p := look(t, address, chromium.Options{})
	p.Allow("503")
	await(t, p, "globalThis.opdock && document.getElementById('connection').dataset.state === 'crowded'")
	expect(t, p, "connection", "Too many open pages")
	expect(t, p, "timeline-empty", "Too many pages are open")
	other.Body.Close()
	await(t, p, "opdock.forest.nodes.size > 0")
}
