// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/internal/tree"
)

// names are the objects as the tree, the timeline and the list show them. What a canvas shows is asked of what draws on it.
const names = `(async () => {
  const { drawGutter } = await import("/gutter.js");
  const drawn = [];
  const g = new Proxy({}, { get: (_, name) => (name === "fillText" ? (text) => drawn.push(text) : (text) => ({ width: (text.length || 0) * 7 })), set: () => true });
  const { timeline, store } = opdock;
  drawGutter(g, { colours: {}, rows: timeline.rows, laneHeight: 20, scroll: 0, height: 10000, several: store.several });
  return {
    tree: [...document.querySelectorAll("#tree .row:not([hidden])")].map((r) => r.innerText.replace(/\s+/g, " ")).join("\n"),
    said: [...document.querySelectorAll("#tree .row:not([hidden])")].map((r) => r.getAttribute("aria-label")).join("\n"),
    timeline: drawn.join("\n"),
    list: document.getElementById("list").innerText.replace(/\s+/g, " "),
  };
})()`

// Objects of the same name are told apart by their namespaces; while there is only one of those, it takes no room.
func TestSeveralNamespaces(t *testing.T) {
	world := demo.New(30, time.Now())
	p := lookAt(t, world, "scale shop")
	await(t, p, "opdock.view.passes.length === 4 && opdock.timeline.rows.length === 1")
	for where, shown := range get[map[string]string](t, p, names) {
		if strings.Contains(shown, demo.Namespace) {
			t.Errorf("the only namespace is in the %s:\n%s", where, shown)
		}
	}
	world.Model.Set(tree.Object{Group: "app.example.com", Kind: "AppService", Namespace: "customer-production-02", Name: "shop", UID: "other", Fleet: true, State: tree.Good, Status: "Ready"})
	do(t, p, `const record = opdock.store.passes[0].raw;
	  opdock.takeRecord("record", { ...record, id: 900, object: { ...record.object, namespace: "customer-production-02" } }); opdock.wake()`)
	await(t, p, "opdock.timeline.rows.length === 2 && opdock.list.rows.items.length === 5 && document.getElementById('tree').innerText.includes('customer-production-02')")
	shown := get[map[string]string](t, p, names)
	for where, wanted := range map[string][]string{
		"tree":     {"customer-production-02 1\nAppService shop Ready\ndefault 5\nAppService billing"},
		"said":     {"Namespace customer-production-02 1 resource\nAppService shop Ready\nNamespace default 5 resources\nAppService billing"},
		"timeline": {"default", "customer-…ction-02"},
		"list":     {"default/ shop AppService", "customer-production-02/ shop AppService"},
	} {
		for _, want := range wanted {
			if !strings.Contains(shown[where], want) {
				t.Errorf("%q is not in the %s:\n%s", want, where, shown[where])
			}
		}
	}
	do(t, p, "opdock.choose(opdock.forest.nodes.get('other'))")
	expect(t, p, "scope", "AppService shop in customer-production-02 and the objects it owns")
	// A namespace can be chosen and folded as objects can.
	click := func(part string) {
		t.Helper()
		do(t, p, "const row = [...document.querySelectorAll('#tree .row')].find((r) => r.innerText.includes('customer-production-02')); (row.querySelector("+quote(part)+") || row).click()")
	}
	click(".name")
	await(t, p, "opdock.view.passes.length === 1 && !document.getElementById('card').hidden")
	expect(t, p, "card", "Namespace customer-production-02", "1 resource")
	world.Model.Set(tree.Object{Group: "app.example.com", Kind: "AppService", Namespace: "customer-production-02", Name: "late", UID: "late", Fleet: true, State: tree.Bad, Status: "Stalled"})
	await(t, p, "opdock.filter.scope.has('AppService/app.example.com/customer-production-02/late')")
	await(t, p, "document.querySelector('#tree .row .state').dataset.state === 'bad'")
	click(".twist")
	await(t, p, "!document.getElementById('tree').innerText.includes('late')")
	// A search finds an object in any namespace.
	do(t, p, `const s = document.getElementById("tree-search"); s.value = "late"; s.dispatchEvent(new Event("input"))`)
	await(t, p, "opdock.treeView.rows.items.map((l) => l.node.object.name).join() === 'customer-production-02,late'")
}
