// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/why"
)

// TestLostEvents are ends that never arrive, and deliveries that arrive late.
func TestLostEvents(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		events []lens.Event
		want   string
	}{
		"the next reconcile of the object": {[]lens.Event{
			begin(1, "web"), wrote(1, 1, "update", shop("Shop", "web", "2")), {Lost: &lens.Lost{Events: 3}}, begin(2, "web"), wrote(2, 0, "update", shop("Shop", "web", "3")), end(2, nil),
		}, "1 /web <unknown> [update Shop/web] failed\n2 /web <unknown> [update Shop/web] succeeded"},
		"nothing, and two controllers of one name": {[]lens.Event{
			begin(1, "web"), begin(2, "web"), wrote(1, 1, "update", shop("Shop", "web", "2")), end(2, nil), end(1, nil),
		}, "2 /web <unknown> succeeded\n1 /web <unknown> [update Shop/web] succeeded"},
		"two controllers of one name": {[]lens.Event{
			begin(1, "web"), begin(2, "web"), {Lost: &lens.Lost{Events: 3}}, begin(3, "web"), end(3, nil),
		}, "1 /web <unknown> failed\n2 /web <unknown> failed\n3 /web <unknown> succeeded"},
		"no reconcile of the object any more": {[]lens.Event{
			begin(1, "web"), {Lost: &lens.Lost{Events: 3}}, begin(2, "db"), wrote(1, 0, "update", shop("Shop", "web", "3")), wrote(2, 0, "update", shop("Shop", "db", "4")), end(2, nil),
		}, "2 /db <unknown> [update Shop/db] succeeded\n3 Shop/web <unknown> [update Shop/web] succeeded\n1 /web <unknown> failed"},
		"a write after the end": {[]lens.Event{
			begin(1, "web"), end(1, nil), wrote(1, 1, "create", shop("Deployment", "web", "2", ownedByWeb)), delivered("ADDED", shop("Deployment", "web", "2", ownedByWeb), 1),
			begin(2, "web"), end(2, nil),
		}, "1 /web <unknown> succeeded\n3 /web <created Deployment/web echo of 2.0> succeeded\n2 Shop/web <unknown> [create Deployment/web] succeeded"},
		"a list that a watch follows late": {[]lens.Event{
			begin(1, "web"), delivered("ADDED", shop("Shop", "db", "1"), 0), {At: noon.Add(-time.Millisecond), Delivery: delivered("ADDED", shop("Shop", "web", "1"), 0).Delivery}, end(1, nil),
			delivered("MODIFIED", shop("Shop", "web", "2"), 0, "spec.size"), begin(2, "web"), end(2, nil),
		}, "1 /web <created Shop/web> succeeded\n2 /web <updated Shop/web spec.size by kubectl> succeeded"},
	} {
		if got := say(play(one.events...)); got != one.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, one.want)
		}
	}
}

func TestLostEndsTakeNoRoom(t *testing.T) {
	t.Parallel()
	told := 0
	teller := New(func(*why.Record) { told++ })
	for i := range uint64(maxRunning + 5) {
		e := begin(i+1, fmt.Sprint("shop-", i))
		e.At = noon
		teller.Add(&e)
	}
	if len(teller.running) != maxRunning || told != 5 {
		t.Errorf("%d reconciles go on, and %d were told", len(teller.running), told)
	}
}

// TestOwnersInNoNamespace has an operator that marks nothing, and whose custom resources are cluster-scoped.
func TestOwnersInNoNamespace(t *testing.T) {
	t.Parallel()
	tenant := func(version string) *lens.Object {
		return &lens.Object{Group: "example.com", Version: "v1", Kind: "Tenant", Name: "acme", UID: "acme", ResourceVersion: version}
	}
	owner := lens.Owner{Group: "example.com", Kind: "Tenant", Name: "acme", UID: "acme", Controller: true}
	records := play(
		delivered("ADDED", tenant("1"), 0), wrote(1, 0, "create", shop("Deployment", "web", "2", owner)), wrote(2, 0, "update", tenant("3")),
	)
	if got, want := say(records), "1 Tenant/acme <created Tenant/acme> [create Deployment/web] [update Tenant/acme] succeeded"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
