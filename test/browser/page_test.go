// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/test/browser/chromium"
)

func TestTheTreeIsLive(t *testing.T) {
	world := demo.New(30, time.Now())
	p := lookAt(t, world)
	expect(t, p, "tree", "AppService", "shop", "Deployment", "1/1 available", "Running")
	expect(t, p, "title", "made-up fleet")
	world.Grow("newcomer", time.Now())
	await(t, p, "document.getElementById('tree').innerText.includes('newcomer')")
	do(t, p, "[...document.querySelectorAll('#tree .row')].find((r) => r.innerText.includes('shop') && r.classList.contains('root')).click()")
	await(t, p, "!document.getElementById('card').hidden")
	expect(t, p, "card", "AppService shop", "Ready", "True, Available", "all replicas are available")
	expect(t, p, "scope", "AppService shop and the objects it owns")
}

// A user scales: four reconciles follow, each of which is connected with the write that led to it.
func TestTheTimelineConnects(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop")
	await(t, p, "opdock.view.passes.length === 4")
	if got := get[int](t, p, "import('/store.js').then((m) => m.chain(opdock.view.passes[0]).size)"); got != 4 {
		t.Errorf("what the user did led to %d reconciles, itself included", got)
	}
	// Six events, each with a line from its change and one to its reconcile, and three writes; three echoes.
	await(t, p, "opdock.timeline.painter.drawn.passes === 4 && opdock.timeline.painter.drawn.echoes === 3")
	if got := get[int](t, p, "opdock.timeline.painter.drawn.edges"); got != 2*6+3 {
		t.Errorf("%d lines connect changes, events, reconciles and writes", got)
	}
	// What was drawn is on the canvas, in the colours of changes and writes. That the test reads it is not the page's fault.
	p.Allow("willReadFrequently")
	for _, name := range []string{"change", "event", "succeeded", "write"} {
		if n := get[int](t, p, pixels+`(opdock.timeline.colours["`+name+`"])`); n < 20 {
			t.Errorf("only %d pixels have the colour of %s", n, name)
		}
	}
	expect(t, p, "list", "shop AppService", "kubectl-client-side-apply: spec.size 1 → 2", "apply Deployment shop", "No-op", "Self-inflicted")
}

// pixels counts those of a colour in the timeline.
const pixels = `((colour) => {
  const [r, g, b] = colour.match(/\d+/g).map(Number);
  const field = document.getElementById("field");
  const { data } = field.getContext("2d").getImageData(0, 0, field.width, field.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) count++;
  return count;
})`

func TestLoopsStandOut(t *testing.T) {
	world := demo.New(30, time.Now())
	p := lookAt(t, world, "resync shop")
	if err := world.Tell("quarrel", "cart", time.Now()); err != nil {
		t.Fatal(err)
	}
	await(t, p, "document.querySelector('[data-finding=loop] b').innerText === '3' && !document.getElementById('found').hidden")
	expect(t, p, "tree", "∞ loop")
	expect(t, p, "found", world.Endpoint.Findings.At(time.Now())[0].Sentence) // what a terminal says as well
	p.Allow("willReadFrequently")
	if n := get[int](t, p, pixels+`(opdock.timeline.colours.loop)`); n < 20 {
		t.Errorf("only %d pixels have the colour of loops", n)
	}
	// The finding leads to its object.
	do(t, p, "document.querySelector('#found button').click()")
	await(t, p, "opdock.treeView.chosen?.object.name === 'cart'")
	do(t, p, "opdock.choose(null); opdock.open(opdock.view.passes.find((p) => p.loop))")
	expect(t, p, "details", "Loop", "goes back and forth between opdock-appservice and cost-saver", "Writers: opdock-appservice and cost-saver")
	do(t, p, "opdock.close()")
	// Once it is over, nothing says that there is a loop now; what has happened stays.
	world.Endpoint.Findings.Reset()
	await(t, p, "document.getElementById('found').hidden && !document.getElementById('tree').innerText.includes('∞ loop')")
	await(t, p, "!opdock.timeline.named.includes('true') && opdock.timeline.named !== ''")
	expect(t, p, "count", "4")
}

func TestAReconcileOpens(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop")
	await(t, p, "opdock.view.passes.length === 4 && opdock.timeline.painter.drawn.passes === 4")
	// By the mouse, in the middle of the bar of the first one.
	place := get[[]float64](t, p, `(async () => {
	  const { laneY, head } = await import("/draw.js");
	  const { gutter } = await import("/gutter.js");
	  const line = opdock.timeline, box = line.box.getBoundingClientRect(), pass = opdock.view.passes[0];
	  return [box.left + gutter + (line.axis.x(pass.start) + line.axis.x(pass.end)) / 2, box.top + laneY(head, 2, line.laneHeight)];
	})()`)
	if err := p.Click(place[0], place[1]); err != nil {
		t.Fatal(err)
	}
	await(t, p, "!document.getElementById('details').hidden")
	expect(t, p, "details", "AppService shop", "Reconcile #1", "by kubectl-client-side-apply", "spec.size", "1", "2", "apply Deployment shop", "This triggered one reconcile")
	// What it led to is a click away.
	do(t, p, "document.querySelector('#details .link').click()")
	await(t, p, "document.getElementById('details').innerText.includes('Reconcile #2')")
	expect(t, p, "details", "the echo of its own write in #1", "2 events, folded into one reconcile", "status.observedGeneration", "kube-controller-manager (status)")
}

func TestFilters(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop", "fail cart", "quarrel search", "resync billing")
	const all = 4 + 3 + 3 + 1
	shown := func(want int) {
		t.Helper()
		await(t, p, "opdock.list.rows.items.length === opdock.view.passes.length")
		if got := get[int](t, p, "opdock.view.passes.length"); got != want {
			t.Errorf("%d reconciles are shown, want %d", got, want)
		}
	}
	choose := func(id, value string) {
		t.Helper()
		do(t, p, `const s = document.getElementById("`+id+`"); s.value = "`+value+`"; s.dispatchEvent(new Event(s.tagName === "SELECT" ? "change" : "input"))`)
	}
	await(t, p, "opdock.view.passes.length === 11")
	shown(all)
	for _, test := range []struct {
		id, value string
		want      int
	}{
		{"outcome", "failed", 1}, {"outcome", "requeued", 1}, {"cause", "retried", 1}, {"cause", "resynced", 1}, {"cause", "updated", 7},
		{"controller", "appservice", all}, {"namespace", "default", all}, {"search", "cost-saver", 3}, {"search", "SPEC.SIZE", 1}, {"search", "nobody", 0},
	} {
		choose(test.id, test.value)
		shown(test.want)
		choose(test.id, "")
	}
	shown(all)
	for finding, want := range map[string]int{"loop": 3, "noop": 2, "self-inflicted": 1} {
		do(t, p, `document.querySelector('[data-finding="`+finding+`"]').click()`)
		shown(want)
		do(t, p, "document.getElementById('clear').click()")
	}
	// An object of the tree is a filter as well, and so is what belongs to it.
	do(t, p, `opdock.choose(opdock.forest.byKey.get("AppService/app.example.com/default/shop"))`)
	shown(4)
	do(t, p, `opdock.choose(opdock.forest.byKey.get("Deployment/apps/default/search"))`)
	shown(3)
	do(t, p, `opdock.choose(null)`)
	choose("search", "nothing has this")
	await(t, p, "!document.getElementById('timeline-empty').hidden")
	expect(t, p, "timeline-empty", "Nothing matches the filters")
}

func TestTotals(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop", "fail cart")
	do(t, p, "document.getElementById('tab-totals').click()")
	await(t, p, "document.getElementById('panel-totals').innerText.includes('since its start')")
	expect(t, p, "panel-totals", "Shown on this page", "Controller appservice since its start", "updated", "retried", "timer", "created", "Self-inflicted")
}

func TestDark(t *testing.T) {
	world := demo.New(30, time.Now())
	tell(t, world, "scale shop")
	address := start(t, page.Options{Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings}).URL()
	background := "getComputedStyle(document.body).backgroundColor"
	light, dark := look(t, address, chromium.Options{}), look(t, address, chromium.Options{Dark: true})
	if get[string](t, light, background) == get[string](t, dark, background) {
		t.Error("who likes it dark gets it light")
	}
	await(t, dark, "opdock.timeline.painter.drawn.passes === 4")
	before := get[string](t, dark, "opdock.timeline.colours.row")
	do(t, dark, "document.getElementById('theme').click()") // light
	if after := get[string](t, dark, "opdock.timeline.colours.row"); after == before || get[string](t, dark, background) != get[string](t, light, background) {
		t.Errorf("the theme that was chosen is not shown: %s, before %s", after, before)
	}
}

func TestReducedMotion(t *testing.T) {
	world := demo.New(30, time.Now())
	tell(t, world, "scale shop")
	p := look(t, start(t, page.Options{Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings}).URL(), chromium.Options{ReducedMotion: true})
	await(t, p, "opdock.timeline.painter.drawn.passes === 4")
	do(t, p, "opdock.controls.scale('time')")
	await(t, p, "!opdock.timeline.steps")
	if end := get[float64](t, p, "new Promise((r) => requestAnimationFrame(() => r(opdock.timeline.time.end % 1000)))"); end != 0 {
		t.Errorf("the timeline moves between full seconds, at %v ms", end)
	}
}
