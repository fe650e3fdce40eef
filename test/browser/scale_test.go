// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/test/browser/chromium"
)

// Who opens what has just happened still wants to see what happens next.
func TestOpeningTheNewestGoesOnFollowing(t *testing.T) {
	for _, scale := range []string{"steps", "time"} {
		world := demo.New(30, time.Now())
		p := lookAt(t, world, "scale shop", "scale cart", "scale search", "scale shop", "scale cart", "scale search")
		await(t, p, "opdock.view.passes.length === 24")
		do(t, p, "opdock.controls.scale('"+scale+"')")
		await(t, p, "opdock.timeline.steps === "+map[string]string{"steps": "true", "time": "false"}[scale])
		tell(t, world, "resync billing")
		await(t, p, "opdock.list.rows.items.length === 25 && opdock.timeline.painter.drawn.passes > 0")
		do(t, p, "opdock.open(opdock.view.passes.at(-1))")
		if !get[bool](t, p, "opdock.timeline.following") {
			t.Errorf("%s: opening the newest pauses", scale)
		}
		if scale == "time" {
			continue
		}
		await(t, p, "opdock.timeline.axis.x(opdock.selected.start) < opdock.timeline.width")
		// What is not in sight can only be shown by going there.
		do(t, p, "opdock.timeline.step.size = 8; opdock.timeline.step.place(); opdock.open(opdock.view.passes[0])")
		if get[bool](t, p, "opdock.timeline.following") {
			t.Error("it goes on following, and what was opened is out of sight")
		}
	}
}

// What was opened may move out of sight, since opening it does not pause. Nothing is pale for its sake any more then.
func TestWhatIsOpenMovesOutOfSight(t *testing.T) {
	world := demo.New(30, time.Now())
	p := lookAt(t, world, "scale shop", "fail cart")
	do(t, p, "opdock.controls.scale('steps')")
	await(t, p, "opdock.timeline.steps && opdock.list.rows.items.length === 7")
	do(t, p, "opdock.open(opdock.view.passes.at(-1))")
	await(t, p, "opdock.timeline.following && opdock.timeline.painter.drawn.pale > 0")
	for range 12 {
		tell(t, world, "scale media")
	}
	await(t, p, "opdock.timeline.axis.x(opdock.selected.end) < 0 && opdock.timeline.painter.drawn.passes > 0 && opdock.timeline.painter.drawn.pale === 0")
}

// A range is of time, so it is there to be chosen while time is shown, and choosing it changes nothing else.
func TestTheRangeIsOfTime(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop")
	await(t, p, "opdock.timeline.steps && document.getElementById('range').disabled")
	pick := func(value string) {
		t.Helper()
		await(t, p, "!document.getElementById('range').disabled")
		do(t, p, `const s = document.getElementById("range"); s.value = "`+value+`"; s.dispatchEvent(new Event("change"))`)
		await(t, p, "opdock.timeline.time.range === "+value)
	}
	// Automatically, as while there is a lot going on.
	do(t, p, "opdock.timeline.chooseScale = () => {}; opdock.timeline.steps = false; opdock.timeline.touch()")
	pick("60000")
	if scale := get[string](t, p, "opdock.timeline.scale"); scale != "auto" {
		t.Errorf("with the range the scale has become %s", scale)
	}
	do(t, p, "delete opdock.timeline.chooseScale; document.querySelector('[data-scale=time]').click()")
	pick("300000")
	do(t, p, "document.querySelector('[data-scale=steps]').click()")
	await(t, p, "document.getElementById('range').disabled")
}

// The button says what it does next.
func TestFoldingTheTree(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()))
	const rows, button = "opdock.treeView.rows.items.length", "document.getElementById('tree-fold')"
	await(t, p, button+".innerText === 'Fold' && "+rows+" > 10")
	do(t, p, button+".click()")
	await(t, p, button+".innerText === 'Unfold' && "+rows+" < 10")
	if label := get[string](t, p, button+".getAttribute('aria-label')"); label != "Unfold all" {
		t.Errorf("it is said to be %q", label)
	}
	do(t, p, button+".click()")
	await(t, p, button+".innerText === 'Fold' && "+rows+" > 10")
	// What is looked for is shown wherever it is.
	do(t, p, `const s = document.getElementById("tree-search"); s.value = "shop"; s.dispatchEvent(new Event("input"))`)
	await(t, p, button+".disabled")
}

// What does not fit into a column ends in an ellipsis, and what stands beside it is still seen.
func TestColumnsThatAreTooNarrow(t *testing.T) {
	world := demo.New(30, time.Now())
	tell(t, world, "scale shop", "fail cart", "quarrel search", "resync billing")
	p := look(t, startDemo(t, world), chromium.Options{Width: 1024, Height: 768})
	await(t, p, "globalThis.opdock && opdock.list.rows.items.length === 11")
	const cut = `(e) => e.scrollWidth > e.clientWidth && getComputedStyle(e).textOverflow !== "ellipsis"`
	await(t, p, "[...document.querySelectorAll('#list .then > *')].some((e) => e.scrollWidth > e.clientWidth)")
	for _, text := range get[[]string](t, p, `[...document.querySelectorAll("#list .row:not([hidden]) span")].filter(`+cut+`).map((e) => e.textContent)`) {
		t.Errorf("%q is cut off", text)
	}
	for _, row := range get[[]string](t, p, `[...document.querySelectorAll("#list .row:not([hidden]) .then")]
	  .filter((e) => e.lastElementChild === null || e.lastElementChild.getBoundingClientRect().right > e.getBoundingClientRect().right + 1).map((e) => e.textContent)`) {
		t.Errorf("not all is seen of %q", row)
	}
	for _, badge := range get[[]string](t, p, `[...document.querySelectorAll("#list .row:not([hidden]) .mark")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent)`) {
		t.Errorf("the badge %q is shortened", badge)
	}
}
