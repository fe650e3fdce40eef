// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/test/browser/chromium"
	"github.com/opdock/opdock/why"
)

// A change that no reconcile followed from is shown beside those of the custom resource that its object belongs to, and
// connected with the write that made it.
func TestChangesThatLedToNothing(t *testing.T) {
	world, changes := demo.New(30, time.Now()), page.NewChanges()
	tell(t, world, "fail shop")
	deployment := why.Object{Kind: "Deployment", Group: "apps", Version: "v1", Namespace: demo.Namespace, Name: "shop"}
	records := world.Endpoint.Records()
	made := records[1].Writes[0]
	changes.Add(page.Change{Type: why.Updated, Object: deployment, ResourceVersion: made.ResourceVersion, Seen: made.At.Add(time.Millisecond),
		Changes: []why.Change{{Path: "spec.replicas", Old: "1", New: "2"}}, Changed: 1})
	p := look(t, start(t, page.Options{Tree: world.Model, Records: world.Endpoint, Changes: changes}).URL(), chromium.Options{})
	// One echo of the write, and those of the retry and the timer.
	await(t, p, "globalThis.opdock && opdock.timeline.painter.drawn.changes === 1 && opdock.timeline.painter.drawn.echoes === 3")
	await(t, p, "opdock.timeline.rows.length === 1")
	// Once a reconcile follows from it after all, it is that one's.
	do(t, p, `opdock.takeRecord("record", { ...opdock.store.passes[0].raw, id: 900, causes: [{ type: "updated", resourceVersion: "`+made.ResourceVersion+`",
	  object: opdock.store.passes[1].raw.writes[0].object, seen: new Date().toISOString() }] }); opdock.wake()`)
	await(t, p, "opdock.timeline.painter.drawn.changes === 0")
}

// Without a recorder, the changes are all there is to see.
func TestChangesAlone(t *testing.T) {
	world, changes := demo.New(30, time.Now()), page.NewChanges()
	p := look(t, start(t, page.Options{Tree: world.Model, Changes: changes}).URL(), chromium.Options{})
	await(t, p, "!document.getElementById('timeline-empty').hidden")
	changes.Add(page.Change{Type: why.Updated, Object: why.Object{Kind: "Deployment", Group: "apps", Namespace: demo.Namespace, Name: "cart"}, ResourceVersion: "7",
		Seen: time.Now(), Changes: []why.Change{{Path: "spec.replicas", Old: "1", New: "2"}}, By: []why.Writer{{Manager: "kubectl"}}})
	await(t, p, "document.getElementById('timeline-empty').hidden && opdock.timeline.painter.drawn.changes === 1")
	if row := get[string](t, p, "opdock.timeline.rows[0].object.kind + ' ' + opdock.timeline.rows[0].object.name"); row != "AppService cart" {
		t.Errorf("it is shown beside %s", row)
	}
}
