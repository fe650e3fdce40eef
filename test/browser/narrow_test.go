// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/test/browser/chromium"
)

// In a window beside an editor, nothing that can be used or read is outside of it.
func TestNarrowWindow(t *testing.T) {
	world := demo.New(30, time.Now())
	tell(t, world, "scale shop", "quarrel shop")
	p := look(t, startDemo(t, world), chromium.Options{Width: 600, Height: 800})
	await(t, p, "globalThis.opdock && opdock.list.rows.items.length > 0")
	outside := `[...document.querySelectorAll('button, input, select, .list-head span, .list .row > span')]
		.filter((e) => e.getClientRects().length > 0 && !e.closest('.skip') && e.getBoundingClientRect().right > innerWidth)
		.map((e) => e.id || e.className || e.textContent).join(', ')`
	if names := get[string](t, p, outside); names != "" {
		t.Errorf("outside of the window are %s", names)
	}
	press(t, p, "3"+kb.Home+kb.Enter)
	await(t, p, "!document.getElementById('details').hidden")
	// What is open lies above the rest, which stays as wide as it was.
	if names := get[string](t, p, outside); names != "" {
		t.Errorf("with an open reconcile, outside of the window are %s", names)
	}
	if width := get[float64](t, p, "document.getElementById('timeline').getBoundingClientRect().width"); width < 300 {
		t.Errorf("the timeline is %v pixels wide", width)
	}
	if !get[bool](t, p, "document.elementsFromPoint(innerWidth - 60, innerHeight / 3)[0].closest('#details') !== null") {
		t.Error("something lies above the reconcile that is open")
	}
}
