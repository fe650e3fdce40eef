// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"testing"

	"github.com/opdock/opdock/internal/lens"
)

func deleting(object *lens.Object) *lens.Object {
	object.Deleting = true
	return object
}

// TestDeletions have three events: an object gets a time of deletion, its last finalizer is removed, and it is gone.
func TestDeletions(t *testing.T) {
	t.Parallel()
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
		"the operator deletes a pod that has no grace period": {[]lens.Event{
			begin(1, "web"), read(1, "example.com", "Shop", "web"), wrote(100, 1, "delete", deleting(shop("Pod", "web", "6", ownedByWeb))), end(1, nil),
			delivered("MODIFIED", deleting(shop("Pod", "web", "5", ownedByWeb)), 0, "metadata.deletionTimestamp"),
			begin(2, "web"), read(2, "example.com", "Shop", "web"), end(2, nil),
		}, `1 Shop/web <unknown> [delete Pod/web] succeeded
2 Shop/web <updated Pod/web metadata.deletionTimestamp by kubectl echo of 1.0> succeeded self-inflicted noop`},
	} {
		if got := say(play(test.events...)); got != test.want {
			t.Errorf("%s:\n%s\ninstead of\n%s", name, got, test.want)
		}
	}
}

// TestDeletionsOfSeveralObjects have no name. They belong to the owner of all that was deleted, if there is one.
func TestDeletionsOfSeveralObjects(t *testing.T) {
	t.Parallel()
	deleted := func(reconcile uint64, owners ...lens.Owner) lens.Event {
		e := wrote(100, reconcile, "deletecollection", &lens.Object{Version: "v1", Kind: "Pod", Namespace: "a", Owners: owners})
		e.Request.Deleted = []string{"Podweb-1", "Podweb-2"}
		return e
	}
	unknown := deleted(0)
	unknown.Request.Object, unknown.Request.Deleted = nil, nil
	for name, test := range map[string]struct {
		events []lens.Event
		want   string
	}{
		"the operator deletes them": {[]lens.Event{
			begin(1, "web"), read(1, "example.com", "Shop", "web"), deleted(1), end(1, nil),
			delivered("DELETED", shop("Pod", "web-1", "6", ownedByWeb), 0), delivered("MODIFIED", deleting(shop("Pod", "web-2", "7", ownedByWeb)), 0, "metadata.deletionTimestamp"),
			begin(2, "web"), read(2, "example.com", "Shop", "web"), end(2, nil),
		}, `1 Shop/web <unknown> [deletecollection Pod/] succeeded
2 Shop/web <deleted Pod/web-1 echo of 1.0> <updated Pod/web-2 metadata.deletionTimestamp by kubectl echo of 1.0> succeeded self-inflicted noop`},
		"one that marks nothing does": {
			[]lens.Event{delivered("MODIFIED", shop("Shop", "web", "2"), 0, "spec.size"), deleted(0, ownedByWeb)},
			"1 Shop/web <updated Shop/web spec.size by kubectl> [deletecollection Pod/] succeeded",
		},
		"they have several owners": {[]lens.Event{deleted(0)}, "1 Pod/ <unknown> [deletecollection Pod/] succeeded"},
		"the answer does not tell": {[]lens.Event{unknown}, "1 pods/ <unknown> [deletecollection pods/] succeeded"},
	} {
		if got := say(play(test.events...)); got != test.want {
			t.Errorf("%s:\n%s\ninstead of\n%s", name, got, test.want)
		}
	}
}
