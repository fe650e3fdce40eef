// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/internal/tree"
	"github.com/opdock/opdock/test/browser/chromium"
)

// A user's change is readable in full above its echoes, on a narrow window too as far as there is room.
func TestTheUsersChangeIsReadFirst(t *testing.T) {
	const wanted = "kubectl-client-side-apply: spec.size 1 → 2"
	for _, width := range []int64{390, 1024, 1440} {
		world := demo.New(30, time.Now())
		tell(t, world, "scale shop")
		p := look(t, startDemo(t, world), chromium.Options{Width: width, Height: 800})
		await(t, p, "globalThis.opdock && opdock.timeline.painter.drawn.passes > 0")
		do(t, p, "opdock.timeline.follow(false); opdock.timeline.step.offset = -28; opdock.timeline.touch()")
		await(t, p, "opdock.timeline.painter.drawn.passes > 0 && opdock.timeline.painter.drawn.headlines.length > 0")
		if got := get[[]string](t, p, "opdock.timeline.painter.drawn.headlines"); !slices.Equal(got, []string{wanted}) {
			t.Errorf("at %d pixels it reads %q", width, got)
		}
	}
}

// Esc takes back, one after the other, all that hides something.
func TestEscapeClears(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop", "resync cart")
	const cleared = "!opdock.filter.active && opdock.view.passes.length === 5 && document.getElementById('clear').hidden"
	for _, field := range []string{"search", "tree-search"} {
		do(t, p, `const f = document.getElementById("`+field+`"); f.focus(); f.value = "cart"; f.dispatchEvent(new Event("input"))`)
		await(t, p, "opdock.filter.text === 'cart' || opdock.treeView.text === 'cart'")
		press(t, p, kb.Escape)
		await(t, p, cleared+" && opdock.treeView.text === '' && document.getElementById('"+field+"').value === '' && document.activeElement.id !== '"+field+"'")
	}
	press(t, p, "n")
	do(t, p, `const s = document.getElementById("outcome"); s.value = "succeeded"; s.dispatchEvent(new Event("change")); document.activeElement.blur()`)
	await(t, p, "opdock.filter.active")
	press(t, p, "j"+kb.Enter)
	await(t, p, "opdock.details.pass")
	press(t, p, kb.Escape)
	await(t, p, "!opdock.details.pass && opdock.filter.active")
	do(t, p, "document.activeElement.blur()")
	press(t, p, kb.Escape)
	await(t, p, cleared+" && document.getElementById('outcome').value === ''")
}

// Enter chooses what is looked for, and again the next of it.
func TestEnterChoosesAnObject(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "scale shop")
	press(t, p, "o")
	do(t, p, `const f = document.getElementById("tree-search"); f.value = "deployment s"; f.dispatchEvent(new Event("input"))`)
	for _, want := range []string{"Deployment search", "Deployment shop", "Deployment search"} {
		press(t, p, kb.Enter)
		await(t, p, "opdock.treeView.chosen && `${opdock.treeView.chosen.object.kind} ${opdock.treeView.chosen.object.name}` === '"+want+"' && !document.getElementById('card').hidden")
	}
}

// The label of a row contains its text.
func TestTheNameOfARowIsItsText(t *testing.T) {
	world := demo.New(30, time.Now())
	p := lookAt(t, world)
	if err := world.Tell("quarrel", "cart", time.Now()); err != nil {
		t.Fatal(err)
	}
	await(t, p, "document.getElementById('tree').innerText.includes('∞ loop')")
	do(t, p, "document.documentElement.style.setProperty('--side', '700px')") // so that nothing is shortened
	await(t, p, "opdock.treeView.rows.width > 650 && !document.getElementById('tree').innerText.includes('…')")
	for _, row := range get[[][2]string](t, p, `[...document.querySelectorAll("#tree .row:not([hidden])")].map((r) => [r.getAttribute("aria-label"), r.innerText.replace(/\s+/g, " ").trim()])`) {
		if row[0] != row[1] {
			t.Errorf("%q is called %q", row[1], row[0])
		}
	}
}

// Names are shortened in their middle, and what stands beside them is not.
func TestLongNames(t *testing.T) {
	const name = "a-very-long-name-of-an-application-that-nobody-would-type-by-hand-7"
	world := demo.New(10, time.Now())
	world.Grow(name, time.Now())
	p := lookAt(t, world)
	if err := world.Tell("quarrel", name, time.Now()); err != nil {
		t.Fatal(err)
	}
	const row = `[...document.querySelectorAll("#tree .row.root")].find((r) => r.querySelector(".name").title.includes("a-very-long"))`
	await(t, p, row+"?.innerText.includes('∞ loop')")
	text := get[string](t, p, row+`.querySelector(".name").innerText`)
	if !strings.HasPrefix(text, "a-v") || !strings.HasSuffix(text, "-7") || !strings.Contains(text, "…") {
		t.Errorf("it is called %q", text)
	}
	if cut := get[[]string](t, p, `[...`+row+`.querySelectorAll(".name, .mark, .kind")].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText)`); len(cut) > 0 {
		t.Errorf("%q is cut off", cut)
	}
}

// Objects that are counted and not seen are accounted for.
func TestObjectsThatAreNotShown(t *testing.T) {
	world := demo.New(30, time.Now())
	p := lookAt(t, world, "scale shop")
	await(t, p, "opdock.forest.nodes.size > 0 && document.getElementById('tree-note').hidden")
	for i, o := range []tree.Object{
		{Kind: "ConfigMap", Name: "kube-root-ca.crt"}, {Kind: "Service", Name: "kubernetes"},
		{Group: "apps", Kind: "ReplicaSet", Name: "shop-old", Spent: true, Owners: []types.UID{"demo-Deployment-shop"}},
	} {
		o.Namespace, o.UID = demo.Namespace, types.UID('a'+rune(i))
		world.Model.Set(o)
	}
	await(t, p, "document.getElementById('tree-note').innerText.includes('2 belong to no custom resource, 1 is kept only to roll back to.')")
	do(t, p, "document.getElementById('tree-fold').click()")
	await(t, p, "/^5 of \\d+ objects shown: \\d+ folded, 2 belong/.test(document.getElementById('tree-note').innerText)")
	await(t, p, "document.getElementById('figures').innerText.includes('objects, 1 reconciled')")
}

// The rows of the timeline are in the order of the tree: what owns stands above what is owned, whatever they are called.
func TestRowsAreInTheOrderOfTheTree(t *testing.T) {
	world := demo.New(30, time.Now())
	owner := tree.Object{Group: "z.example.com", Kind: "Zoo", Namespace: demo.Namespace, Name: "zulu", UID: "zulu", Fleet: true, State: tree.Good}
	world.Model.Set(owner)
	world.Model.Set(tree.Object{
		Group: "app.example.com", Kind: "AppService", Namespace: demo.Namespace, Name: "shop", UID: "demo-AppService-shop", Fleet: true, State: tree.Good,
		Owners: []types.UID{"zulu"},
	})
	p := lookAt(t, world, "scale shop", "scale cart")
	do(t, p, `opdock.takeRecord("record", { ...opdock.store.passes[0].raw, id: 900, controller: "zoo", object: { kind: "Zoo", group: "z.example.com", namespace: "default", name: "zulu" } }); opdock.wake()`)
	await(t, p, "opdock.timeline.all.length === 3")
	if rows := get[string](t, p, "opdock.timeline.all.map((r) => r.object.name + r.place.depth).join(' ')"); rows != "cart0 zulu0 shop1" {
		t.Errorf("the rows are %s", rows)
	}
}

// A resync is read as one, in the list and in the details: no writer is blamed for it.
func TestAResyncIsReadAsOne(t *testing.T) {
	p := lookAt(t, demo.New(30, time.Now()), "resync cart")
	expect(t, p, "list", "it was resynced, unchanged")
	press(t, p, "j"+kb.Enter)
	await(t, p, "opdock.details.pass")
	expect(t, p, "details", "AppService cart was resynced, unchanged, itself", "No-op", "nothing it reads has changed, and it wrote nothing")
	if got := get[string](t, p, `document.querySelector("#details .step .who").innerText`); !strings.HasPrefix(got, "seen ") {
		t.Errorf("somebody is named for it: %q", got)
	}
}
