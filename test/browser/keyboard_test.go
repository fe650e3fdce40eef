// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/test/browser/chromium"
)

// active is what assistive technology is told to be at in the element that has the focus.
const active = `document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))`

func TestTheTreeByKeyboard(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop")
	is := func(want string) {
		t.Helper()
		await(t, p, active+" !== null")
		if got := get[string](t, p, active+".getAttribute('aria-label')"); !strings.HasPrefix(got, want) {
			t.Errorf("at %q, want %q", got, want)
		}
	}
	press(t, p, "1")
	is("AppService billing ")
	press(t, p, kb.ArrowDown)
	is("Deployment billing ")
	press(t, p, kb.ArrowDown)
	is("ReplicaSet billing-")
	press(t, p, kb.ArrowLeft) // folds
	if got := get[string](t, p, active+".getAttribute('aria-expanded')"); got != "false" {
		t.Errorf("it is still unfolded: %s", got)
	}
	press(t, p, kb.ArrowLeft) // to what it belongs to
	is("Deployment billing ")
	press(t, p, kb.ArrowLeft+kb.ArrowLeft)
	is("AppService billing ")
	press(t, p, kb.ArrowRight)
	is("Deployment billing ")
	press(t, p, kb.End)
	is("Service shop ")
	press(t, p, kb.Home)
	is("AppService billing ")
	press(t, p, kb.Enter)
	await(t, p, "opdock.treeView.chosen?.object.name === 'billing' && !document.getElementById('card').hidden")
	if got := get[string](t, p, active+".getAttribute('aria-selected')"); got != "true" {
		t.Errorf("what was chosen is not said to be: %s", got)
	}
	press(t, p, kb.Escape)
	await(t, p, "opdock.treeView.chosen === null && document.getElementById('card').hidden")
}

// In the tree, letters lead to objects and do nothing else.
func TestTypingInTheTree(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop")
	press(t, p, "1")
	typed := func(keys, want string) {
		t.Helper()
		// All at once, because what is typed later begins another word.
		do(t, p, `opdock.treeView.typedAt = -Infinity;
		  for (const key of `+quote(keys)+`) document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }))`)
		if got := get[string](t, p, active+".getAttribute('aria-label')"); !strings.HasPrefix(got, want) {
			t.Errorf("%s leads to %q, want %q", keys, got, want)
		}
	}
	typed("s", "AppService search ")
	typed("sh", "AppService shop ")
	typed("s", "Deployment shop ")
	typed("shop-7", "ReplicaSet shop-7d9f6b5c4 ")
	typed("b", "AppService billing ")
	typed("bb", "ReplicaSet billing-7d9f6b5c4 ")
	typed("nothing", "ReplicaSet billing-7d9f6b5c4 ")
	if now := get[string](t, p, "opdock.timeline.scale + [...opdock.filter.findings] + document.activeElement.id"); now != "autotree" {
		t.Errorf("what was typed has done something else: %s", now)
	}
	do(t, p, "opdock.treeView.typedAt = -Infinity")
	press(t, p, "3") // what no word begins with is a key as anywhere
	await(t, p, "document.activeElement.id === 'list'")
}

// Who types what is not meant for the page, as those do who speak to their computer, turns its keys off.
func TestKeysAreTurnedOff(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop")
	press(t, p, "?")
	await(t, p, "document.getElementById('help').open && document.getElementById('single-keys').checked")
	do(t, p, "document.getElementById('single-keys').click()")
	press(t, p, kb.Escape)
	await(t, p, "!document.getElementById('help').open")
	press(t, p, "slfjT/?")
	if now := get[string](t, p, "[opdock.timeline.scale, opdock.filter.findings.size, opdock.timeline.following, opdock.selected, document.activeElement.tagName, document.getElementById('help').open].join()"); now != "auto,0,true,,BUTTON,false" && now != "auto,0,true,,BODY,false" {
		t.Errorf("the keys still do something: %s", now)
	}
	// It stays so for pages that are opened later, and everything can be reached all the same.
	if later := get[string](t, p, "import('/settings.js?later').then((m) => m.recall('keys'))"); later != "off" {
		t.Errorf("a page that is opened later recalls %q", later)
	}
	do(t, p, "document.getElementById('list').focus()")
	press(t, p, kb.Enter)
	await(t, p, "!document.getElementById('details').hidden")
	press(t, p, kb.Escape)
	await(t, p, "document.getElementById('details').hidden && opdock.timeline.scale === 'auto'")
	do(t, p, "document.getElementById('help-open').click(); document.getElementById('single-keys').click(); document.getElementById('help').close()")
	press(t, p, "s")
	await(t, p, "opdock.timeline.scale !== 'auto'")
}

// Only some of the reconciles are there as elements, so each says which of how many it is.
func TestListHasItsLength(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop")
	do(t, p, `const record = opdock.store.passes[0].raw;
	  for (let i = 0; i < 496; i++) opdock.takeRecord("record", { ...record, id: 1000 + i });
	  opdock.wake()`)
	await(t, p, "opdock.list.rows.items.length === 500")
	press(t, p, "3"+kb.End)
	await(t, p, active+" !== null && opdock.selected === opdock.list.rows.items[499]")
	if place := get[string](t, p, active+".ariaPosInSet + ' of ' + "+active+".ariaSetSize"); place != "500 of 500" {
		t.Errorf("the last is said to be %s", place)
	}
}

func TestReconcilesByKeyboard(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop", "fail cart")
	await(t, p, "opdock.list.rows.items.length === 7")
	press(t, p, "j")
	await(t, p, "opdock.selected === opdock.list.rows.items[0]")
	press(t, p, "jj")
	await(t, p, "opdock.selected === opdock.list.rows.items[2]")
	press(t, p, "k")
	await(t, p, "opdock.selected === opdock.list.rows.items[1]")
	if said := get[string](t, p, "document.getElementById('say').textContent"); !strings.Contains(said, "AppService") {
		t.Errorf("what is chosen is not said: %q", said)
	}
	press(t, p, "3"+kb.Home+kb.Enter)
	await(t, p, "!document.getElementById('details').hidden && document.activeElement.tagName === 'H2'")
	press(t, p, kb.Escape)
	await(t, p, "document.getElementById('details').hidden && document.activeElement.id === 'list'")
	// Along the rows of the timeline.
	press(t, p, "2"+kb.ArrowRight)
	await(t, p, "opdock.selected !== null")
	press(t, p, kb.Home)
	row := get[string](t, p, "opdock.selected.key")
	press(t, p, kb.ArrowRight)
	await(t, p, "opdock.selected === opdock.timeline.all.find((r) => r.key === opdock.selected.key).passes[1]")
	press(t, p, kb.ArrowDown)
	await(t, p, "opdock.selected.key !== "+quote(row))
	press(t, p, kb.Enter)
	await(t, p, "!document.getElementById('details').hidden")
}

func TestTheOtherKeys(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop", "quarrel cart")
	press(t, p, "/")
	await(t, p, "document.activeElement.id === 'search'")
	do(t, p, "document.getElementById('search').value = ''") // a key that is sent by hand is typed even if the page takes it
	press(t, p, "jkf?")                                      // typed, and nothing else
	if got := get[string](t, p, "document.getElementById('search').value"); got != "jkf?" {
		t.Errorf("the search is for %q", got)
	}
	press(t, p, kb.Escape) // takes it back
	await(t, p, "document.getElementById('search').value === '' && !opdock.filter.active && document.activeElement.id !== 'search'")
	press(t, p, "f")
	await(t, p, "!opdock.timeline.following && document.getElementById('follow').innerText === 'Paused'")
	press(t, p, "f")
	await(t, p, "opdock.timeline.following")
	press(t, p, "l")
	await(t, p, "opdock.view.passes.length === 3 && opdock.view.passes.every((p) => p.loop)")
	press(t, p, "l")
	press(t, p, "?")
	await(t, p, "document.getElementById('help').open")
	expect(t, p, "help", "Keys and signs", "search reconciles", "a no-op")
	press(t, p, kb.Escape)
	await(t, p, "!document.getElementById('help').open")
	size := get[float64](t, p, "opdock.timeline.step.size")
	press(t, p, "+")
	await(t, p, "opdock.timeline.step.size > "+number(size))
	press(t, p, "s")
	await(t, p, "!opdock.timeline.steps")
	press(t, p, "T")
	await(t, p, "!document.getElementById('panel-totals').hidden")
}

// Everything that can be used is reached by the tabulator, has a name, and shows that it has the focus.
func TestEverythingIsReached(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop")
	do(t, p, "opdock.open(opdock.view.passes[0]); document.activeElement.blur()")
	wanted := get[[]string](t, p, `[...document.querySelectorAll("button, input, select, [tabindex='0']")]
	  .filter((e) => e.checkVisibility() && e.tabIndex >= 0 && !e.disabled && !e.closest("[inert]")).map((e, i) => e.id || (e.id = "stop-" + i))`)
	reached := map[string]bool{}
	for range len(wanted) + 5 {
		press(t, p, kb.Tab)
		reached[get[string](t, p, "document.activeElement.id")] = true
		if problem := get[string](t, p, focusProblem); problem != "" {
			t.Error(problem)
		}
	}
	for _, id := range wanted {
		if !reached[id] {
			t.Errorf("%s is never reached", id)
		}
	}
}

// What scrolls the timeline is no place to stop at: it has no name, and the timeline itself is one already.
func TestTheTimelineIsOneStop(t *testing.T) {
	world := demo.New(60, time.Now())
	stories := make([]string, 0, len(world.Names()))
	for _, name := range world.Names() {
		stories = append(stories, "resync "+name)
	}
	p := lookAt(t, world, stories...)
	await(t, p, "opdock.timeline.scroller.scrollHeight > opdock.timeline.scroller.clientHeight")
	press(t, p, "2"+kb.Tab)
	await(t, p, "document.activeElement.id === 'list-grip'")
	do(t, p, "document.getElementById('timeline-scroll').focus()") // as a click on it does
	await(t, p, "document.activeElement.id === 'timeline'")
}

const focusProblem = `((e) => {
  if (e === document.body || e.classList.contains("skip")) return "";
  const style = getComputedStyle(e);
  const name = e.getAttribute("aria-label") || e.closest("label")?.innerText || e.innerText || e.getAttribute("aria-labelledby");
  if (!name?.trim()) return "there is no name for " + e.outerHTML.slice(0, 80);
  if (style.outlineStyle === "none" && !e.classList.contains("grip")) return "it is not visible that " + (e.id || e.outerHTML.slice(0, 80)) + " has the focus";
  return "";
})(document.activeElement)`

func TestContrast(t *testing.T) {
	for _, dark := range []bool{false, true} {
		world := demo.New(30, time.Now())
		tell(t, world, "scale shop", "fail cart", "quarrel search", "resync billing")
		p := look(t, startDemo(t, world), chromium.Options{Dark: dark})
		await(t, p, "opdock.list.rows.items.length === 11")
		do(t, p, "opdock.choose(opdock.forest.roots[0]); opdock.choose(null); opdock.open(opdock.view.passes.find((p) => p.loop))")
		for _, problem := range get[[]string](t, p, faint) {
			t.Errorf("dark %v: %s", dark, problem)
		}
	}
}

// faint lists texts that differ too little from what is behind them: less than 4.5 to 1.
const faint = `(() => {
  const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m };
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > .99) return c } return [255, 255, 255] };
  const found = new Set();
  for (const e of document.querySelectorAll("body *")) {
    if (!e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.closest(".hidden, .skip, select")) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) found.add(ratio.toFixed(2) + " " + e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 30));
  }
  return [...found];
})()`
