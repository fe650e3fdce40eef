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

// An object that is looked at while it is deleted is said to be gone. What happened to it stays, until the user wants
// to see everything again; another of the same name takes its place.
func TestTheChosenObjectIsDeleted(t *testing.T) {
	world := demo.New(30, time.Now())
	p := lookAt(t, world, "scale shop", "scale cart")
	await(t, p, "opdock.view.passes.length === 8")
	do(t, p, `opdock.choose(opdock.forest.byKey.get("AppService/app.example.com/default/shop"))`)
	await(t, p, "opdock.view.passes.length === 4")
	expect(t, p, "card", "Ready", "all replicas are available")
	world.Model.Remove("demo-AppService-shop")
	await(t, p, "document.getElementById('card').innerText.includes('deleted')")
	if card := text(t, p, "card"); strings.Contains(card, "Ready") || !strings.Contains(card, "AppService shop") {
		t.Errorf("of what is gone the card says:\n%s", card)
	}
	expect(t, p, "scope", "AppService shop (deleted) and the objects it owned")
	if said := get[string](t, p, "document.getElementById('say').textContent"); said != "AppService shop was deleted." {
		t.Errorf("what is said is %q", said)
	}
	if shown := get[int](t, p, "opdock.view.passes.length"); shown != 4 {
		t.Errorf("of what happened to it %d reconciles are shown", shown)
	}
	world.Model.Set(tree.Object{Group: "app.example.com", Kind: "AppService", Namespace: demo.Namespace, Name: "shop", UID: "another", Fleet: true, State: tree.Busy, Status: "Reconciling"})
	await(t, p, "document.getElementById('card').innerText.includes('Reconciling')")
	expect(t, p, "scope", "AppService shop and the objects it owns")
	world.Model.Remove("another")
	await(t, p, "document.getElementById('card').innerText.includes('deleted') && document.getElementById('scope').innerText.includes('(deleted)')")
	do(t, p, "document.getElementById('unscope').click()")
	await(t, p, "opdock.view.passes.length === 8 && document.getElementById('card').hidden && document.getElementById('unscope').hidden")
	expect(t, p, "scope", "All objects")
}

// Many kinds have no status.
func TestAnObjectWithoutStatus(t *testing.T) {
	world := demo.New(10, time.Now())
	world.Model.Set(tree.Object{Group: "apps", Kind: "ControllerRevision", Namespace: demo.Namespace, Name: "one", UID: "one", Fleet: true, Created: time.Now().Add(-time.Hour)})
	p := lookAt(t, world)
	await(t, p, "opdock.forest.nodes.has('one')")
	do(t, p, "opdock.choose(opdock.forest.nodes.get('one'))")
	if card := text(t, p, "card"); card != "ControllerRevision one\n\ndefault · 60 min old" {
		t.Errorf("the card says %q", card)
	}
}
