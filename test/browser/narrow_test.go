// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/test/browser/chromium"
)

// outside names what can be used or read and is not in the window.
const outside = `[...document.querySelectorAll('button, input, select, .list-head span, .list .row > span, .found span')]
	.filter((e) => e.checkVisibility() && !e.closest('.skip, .hidden') && e.getBoundingClientRect().right > innerWidth + 1)
	.map((e) => e.id || e.className || e.textContent).join(', ')`

// places are where the parts of the page are, and how wide the part of the timeline is in which something is drawn.
const places = `JSON.stringify(["timeline", "list", "filters", "legend"].map((id) => document.getElementById(id).getBoundingClientRect()))`

// From a phone to a wall: everything is in the window, the timeline has room, and opening a reconcile moves nothing.
func TestEveryWidth(t *testing.T) {
	for _, size := range [][3]int64{{390, 844, 250}, {600, 800, 400}, {1024, 768, 450}, {1440, 900, 800}, {2560, 1300, 1800}} {
		t.Run(strconv.FormatInt(size[0], 10), func(t *testing.T) {
			world := demo.New(30, time.Now())
			tell(t, world, "scale shop", "quarrel shop", "fail cart")
			p := look(t, startDemo(t, world), chromium.Options{Width: size[0], Height: size[1]})
			await(t, p, "globalThis.opdock && opdock.list.rows.items.length > 0 && opdock.timeline.painter.drawn.passes > 0")
			for key, part := range map[string]string{"1": "tree", "3": "list", "2": "timeline"} {
				press(t, p, key)
				await(t, p, "document.activeElement.id === '"+part+"' && document.getElementById('"+part+"').checkVisibility()")
				if names := get[string](t, p, outside); names != "" {
					t.Errorf("with the %s, outside of the window are %s", part, names)
				}
			}
			press(t, p, "2")
			await(t, p, "document.activeElement.id === 'timeline'")
			// The timeline is measured when it has been shown.
			await(t, p, fmt.Sprintf("opdock.timeline.width >= %d", size[2]))
			if height := get[float64](t, p, "document.getElementById('timeline').getBoundingClientRect().height"); height < 200 {
				t.Errorf("the timeline is %v pixels high", height)
			}
			// The legend is one line.
			if height := get[float64](t, p, "document.getElementById('legend').getBoundingClientRect().height"); height > 28 {
				t.Errorf("the legend is %v pixels high", height)
			}
			expect(t, p, "legend", "change", "echo of a write", "event", "reconcile", "no-op", "loop", "failed", "write")
			before := get[string](t, p, places)
			press(t, p, kb.End+kb.Enter)
			await(t, p, "!document.getElementById('details').hidden && document.getElementById('details').contains(document.activeElement)")
			if after := get[string](t, p, places); after != before {
				t.Errorf("opening a reconcile moves something:\n%s\n%s", before, after)
			}
			// Beside a phone, all of what happens is still seen.
			covered := get[bool](t, p, `(() => {
			  const box = document.getElementById("timeline").getBoundingClientRect();
			  return [0.3, 0.6, 0.95].some((share) => document.elementFromPoint(box.left + box.width * share, box.top + 60).closest("#details"));
			})()`)
			if covered != (size[0] <= 720) {
				t.Errorf("details lie above the timeline: %v", covered)
			}
			press(t, p, "1") // the tree below is reached by its key
			await(t, p, "document.getElementById('details').hidden && document.activeElement.id === 'tree'")
		})
	}
}

// On a phone the filters open on demand.
func TestFiltersOnAPhone(t *testing.T) {
	world := demo.New(30, time.Now())
	tell(t, world, "scale shop", "resync cart")
	p := look(t, startDemo(t, world), chromium.Options{Width: 390, Height: 844})
	await(t, p, "globalThis.opdock && opdock.view.passes.length === 5 && !document.getElementById('search').checkVisibility()")
	do(t, p, "document.getElementById('filters-open').click()")
	await(t, p, "document.getElementById('search').checkVisibility()")
	if names := get[string](t, p, outside); names != "" {
		t.Errorf("outside of the window are %s", names)
	}
	do(t, p, "document.querySelector('[data-view=list]').click()")
	await(t, p, "document.querySelectorAll('#list .row:not([hidden])').length === 5 && document.querySelector('#list .row').getBoundingClientRect().height === 48")
}
