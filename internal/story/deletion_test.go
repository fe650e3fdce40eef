// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"testing"

	"github.com/opdock/opdock/internal/lens"
)

// TestDeletions have three events: an object gets a time of deletion, its last finalizer is removed, and it is gone.
func TestDeletions(t *testing.T) {
	t.Parallel()
	deleting := func(object *lens.Object) *lens.Object {
		object.Deleting = true
		return object
	}
	finalized := func(e lens.Event) lens.Event {
		e.Request.Finalized = true
		return e
	}
	for name, test := range map[string]struct {
		events []lens.Event
		want   string
	}{
		"a user deletes what the operator finalizes": {[]lens.Event{
			delivered("MODIFIED", deleting(shop("Shop", "web", "2")), 0, "metadata.deletionTimestamp"),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), finalized(wrote(100, 1, "update", deleting(shop("Shop", "web", "2")))), end(1, nil),
			delivered("DELETED", deleting(shop("Shop", "web", "3")), 100),
			begin(2, "web"), read(2, "example.com", "Shop", "web"), end(2, nil),
		}, `1 Shop/web <updated Shop/web metadata.deletionTimestamp by kubectl> [update Shop/web] succeeded
2 Shop/web <deleted Shop/web echo of 1.0> succeeded self-inflicted noop`},
		"a user deletes what an operator without marks finalizes": {[]lens.Event{
			delivered("MODIFIED", deleting(shop("Shop", "web", "2")), 0, "metadata.deletionTimestamp"), finalized(wrote(100, 0, "update", deleting(shop("Shop", "web", "2")))),
		}, `1 Shop/web <updated Shop/web metadata.deletionTimestamp by kubectl> [update Shop/web] succeeded`},
		"a recording does not tell of the end": {[]lens.Event{
			delivered("MODIFIED", deleting(shop("Shop", "web", "2")), 0, "metadata.deletionTimestamp"),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), wrote(100, 1, "update", deleting(shop("Shop", "web", "2"))), end(1, nil),
		}, `1 Shop/web <updated Shop/web metadata.deletionTimestamp by kubectl> [update Shop/web] succeeded`},
		"another reconcile writes later, and is answered with the version of before": {[]lens.Event{
			delivered("MODIFIED", deleting(shop("Shop", "web", "2")), 0, "metadata.deletionTimestamp"),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), begin(2, "db"), wrote(100, 2, "update", deleting(shop("Shop", "web", "2"))), end(1, nil),
		}, `1 Shop/web <updated Shop/web metadata.deletionTimestamp by kubectl> succeeded
2 Shop/db <unknown> [update Shop/web] failed`},
		"the operator deletes what another controller finalizes": {[]lens.Event{
			begin(1, "web"), read(1, "example.com", "Shop", "web"), wrote(100, 1, "delete", deleting(shop("Deployment", "web", "5", ownedByWeb))), end(1, nil),
			delivered("MODIFIED", deleting(shop("Deployment", "web", "5", ownedByWeb)), 100, "metadata.deletionTimestamp"),
			begin(2, "web"), read(2, "example.com", "Shop", "web"), end(2, nil),
			delivered("DELETED", deleting(shop("Deployment", "web", "6", ownedByWeb)), 100),
			begin(3, "web"), read(3, "example.com", "Shop", "web"), end(3, nil),
		}, `1 Shop/web <unknown> [delete Deployment/web] succeeded
2 Shop/web <updated Deployment/web metadata.deletionTimestamp by kubectl echo of 1.0> succeeded self-inflicted noop
3 Shop/web <deleted Deployment/web echo of 1.0> succeeded self-inflicted noop`},
	} {
		if got := say(play(test.events...)); got != test.want {
			t.Errorf("%s:\n%s\ninstead of\n%s", name, got, test.want)
		}
	}
}
