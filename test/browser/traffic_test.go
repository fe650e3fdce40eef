// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/test/browser/chromium"
)

// startLensed serves a made-up world whose operator is watched from outside.
func startLensed(t *testing.T, world *demo.World) string {
	t.Helper()
	return start(t, page.Options{
		Title: "made-up fleet", Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings, Traffic: world.Traffic, Rights: demo.Rights,
	}).URL()
}

// rowsOf are the rows of the traffic, in words.
const rowsOf = `opdock.traffic.rows.items.map((r) => r.resource + " " + r.verb + " " + r.count).join("; ")`

// What goes over the wire is counted per resource and verb, with the filters of the page, and leads to reconciles.
func TestTraffic(t *testing.T) {
	world := demo.New(30, time.Now())
	tell(t, world, "scale shop", "fail cart")
	p := look(t, startLensed(t, world), chromium.Options{})
	await(t, p, "globalThis.opdock && opdock.store.passes.length === 7 && opdock.wire.all.length > 0")
	press(t, p, "4")
	await(t, p, "document.activeElement.id === 'traffic' && document.getElementById('traffic').checkVisibility() && opdock.traffic.rows.items.length > 3")
	if document := get[bool](t, p, "document.getElementById('timeline').checkVisibility() || document.getElementById('cause').checkVisibility()"); document {
		t.Error("the timeline, or a filter for reconciles, is still seen")
	}
	expect(t, p, "traffic", "deployments", "watch events", "apply", "secrets", "1 refused")
	expect(t, p, "traffic-figures", "1 refused", "watch events")
	all := get[int64](t, p, "opdock.traffic.lines.items.length")
	if drawn := get[bool](t, p, `(() => { const c = document.querySelector("#traffic .chart"); return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v) => v > 0); })()`); !drawn {
		t.Error("there are no bars")
	}

	// Filters: refused ones, an object, a namespace, a text.
	do(t, p, "document.querySelector('[data-wire=refused]').click()")
	await(t, p, rowsOf+" === 'secrets get 1'")
	do(t, p, "document.getElementById('clear').click()")
	await(t, p, "opdock.traffic.lines.items.length === "+strconv.FormatInt(all, 10))
	do(t, p, "opdock.choose(opdock.forest.byKey.get('AppService/app.example.com/default/cart'))")
	await(t, p, "opdock.traffic.lines.items.length > 0 && opdock.traffic.lines.items.every((x) => x.raw.name === 'cart')")
	expect(t, p, "traffic-scope", "AppService cart and the objects it owns")
	press(t, p, kb.Escape)
	await(t, p, "opdock.traffic.lines.items.length === "+strconv.FormatInt(all, 10))
	do(t, p, "const s = document.getElementById('search'); s.value = 'forbidden'; s.dispatchEvent(new Event('input'))")
	await(t, p, rowsOf+" === 'secrets get 1'")
	do(t, p, "opdock.controls.clear()")
	await(t, p, "opdock.traffic.lines.items.length === "+strconv.FormatInt(all, 10))

	// A row limits the requests below; a request leads to its reconcile.
	press(t, p, "4"+kb.Home+kb.ArrowDown)
	await(t, p, "opdock.traffic.rows.active === 1")
	press(t, p, kb.Enter)
	await(t, p, "opdock.traffic.chosen && opdock.traffic.lines.items.every((x) => x.key === opdock.traffic.chosen)")
	await(t, p, "document.querySelector('#traffic .row[aria-selected=true]').ariaLabel.startsWith('patch appservices.app.example.com/status')")
	do(t, p, "document.getElementById('wire').focus()")
	press(t, p, kb.Enter)
	await(t, p, "!document.getElementById('details').hidden && opdock.details.pass.writes.length > 0")
	press(t, p, kb.Escape)
	await(t, p, "document.getElementById('details').hidden && document.activeElement.id === 'wire'")
	press(t, p, kb.Escape)
	await(t, p, "!opdock.traffic.chosen")

	// What happens from now on arrives.
	tell(t, world, "scale cart")
	await(t, p, "opdock.traffic.lines.items.length > "+strconv.FormatInt(all, 10))
	press(t, p, "2")
	await(t, p, "document.activeElement.id === 'timeline' && !document.getElementById('traffic').checkVisibility()")
}

// Rights that are granted, used, unused and missing stand in a table, each with what it is based on.
func TestRights(t *testing.T) {
	world := demo.New(10, time.Now())
	p := look(t, startLensed(t, world), chromium.Options{})
	await(t, p, "globalThis.opdock && opdock.forest.nodes.size > 0")
	press(t, p, "5")
	await(t, p, "document.querySelectorAll('#rights td[data-cell]').length === 18")
	expect(t, p, "rights-title", "Granted by ClusterRole manager-role")
	expect(t, p, "rights-figures", "1,342 requests as system:serviceaccount:shop:operator in 1 recording")
	expect(t, p, "rights-chips", "Missing 1", "Refused 1", "Unused 6", "Broader 1", "Kept 3", "Used 6")
	expect(t, p, "evidence", "update appservices.app.example.com/finalizers", "A write sets blockOwnerDeletion", "12 requests", "get secrets", "3 requests, all refused",
		"in reconcile #31 of appservice default/cart", "Granted by ClusterRole manager-role (internal/controller/app.go:31).", "Note: rights whose requests were all refused")
	if used := text(t, p, "evidence"); len(used) == 0 || get[bool](t, p, "document.querySelector('#evidence .right-used') !== null") {
		t.Error("what is as it should be stands among what differs")
	}
	// By keys: to a cell, and along.
	press(t, p, "5")
	await(t, p, "document.activeElement.dataset.cell === 'list appservices.app.example.com'")
	press(t, p, kb.ArrowRight)
	await(t, p, "document.activeElement.dataset.cell === 'watch appservices.app.example.com' && document.activeElement.ariaSelected === 'true'")
	expect(t, p, "evidence", "Used", "watch appservices.app.example.com", "An informer: 214 reads were answered from its cache")
	press(t, p, kb.ArrowDown)
	await(t, p, "document.activeElement.dataset.cell === 'update appservices.app.example.com/finalizers'")
	press(t, p, kb.Escape)
	await(t, p, "!opdock.rights.at && document.getElementById('evidence-title').textContent === 'What differs'")
	// Only some of them, and a search.
	do(t, p, "document.querySelector('#rights-chips [data-state=unused]').click()")
	await(t, p, "document.querySelectorAll('#rights td[data-cell]').length === 6")
	do(t, p, "const s = document.getElementById('search'); s.value = 'services'; s.dispatchEvent(new Event('input'))")
	await(t, p, "[...document.querySelectorAll('#rights tbody th')].map((e) => e.innerText).join() === 'services'")
}

// A page without a lens shows neither, and their keys do nothing.
func TestNoTrafficWithoutALens(t *testing.T) {
	p := lookAt(t, demo.New(10, time.Now()), "scale shop")
	press(t, p, "45")
	if get[bool](t, p, "document.getElementById('stages').checkVisibility() || document.body.dataset.stage !== 'timeline'") {
		t.Error("there is a way to what is not there")
	}
}

// From a phone to a wall, in light and dark: everything is in the window.
func TestEveryWidthOfTrafficAndRights(t *testing.T) {
	for i, size := range [][2]int64{{390, 844}, {1024, 768}, {1440, 900}} {
		t.Run(strconv.FormatInt(size[0], 10), func(t *testing.T) {
			world := demo.New(30, time.Now())
			tell(t, world, "scale shop", "fail cart")
			p := look(t, startLensed(t, world), chromium.Options{Width: size[0], Height: size[1], Dark: i%2 == 0})
			await(t, p, "globalThis.opdock && opdock.wire.all.length > 0")
			for key, id := range map[string]string{"4": "traffic", "5": "rights"} {
				press(t, p, key)
				await(t, p, "document.getElementById('"+id+"').checkVisibility() && document.querySelectorAll('#traffic .row:not([hidden]), #rights td[data-cell]').length > 3")
				if names := get[string](t, p, outside); names != "" {
					t.Errorf("with %s, outside of the window are %s", id, names)
				}
				if get[bool](t, p, "document.documentElement.scrollWidth > innerWidth") {
					t.Errorf("with %s, the page is wider than the window", id)
				}
				if high := get[float64](t, p, "document.getElementById('"+id+"').closest('.traffic, .rights-scroll').getBoundingClientRect().height"); high < 90 {
					t.Errorf("%s is %v pixels high", id, high)
				}
			}
		})
	}
}
