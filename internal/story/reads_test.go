// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"net/http"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/lens"
)

// got is a read that bypasses the cache.
func got(reconcile uint64, object *lens.Object) lens.Event {
	e := wrote(0, reconcile, "get", object)
	e.Request.Duration = time.Millisecond
	return e
}

// TestLiveReads has reconcilers that read without a cache: as unstructured objects, through an APIReader, or of kinds that
// the client does not cache.
func TestLiveReads(t *testing.T) {
	t.Parallel()
	secret := func(version string) *lens.Object {
		return &lens.Object{Version: "v1", Kind: "Secret", Namespace: "a", Name: "shared", UID: "secret", ResourceVersion: version}
	}
	metadata := func(version string) lens.Event {
		object := secret(version)
		object.Kind = partial
		e := delivered("MODIFIED", object, 0)
		e.Delivery.Resource = lens.Resource{Version: "v1", Resource: "secrets"}
		return e
	}
	missing := got(2, shop("Shop", "web", ""))
	missing.Request.Object, missing.Request.Status = nil, http.StatusNotFound
	unknown := got(1, shop("Shop", "web", ""))
	unknown.Request.Object, unknown.Request.Status = nil, http.StatusNotFound
	list := got(2, secret(""))
	list.Request.Verb, list.Request.Object, list.Request.Resource.Name = "list", nil, ""
	late := read(1, "example.com", "Shop", "web")
	late.At = noon
	for name, one := range map[string]struct {
		events []lens.Event
		want   string
	}{
		"its own object": {
			[]lens.Event{begin(1, "web"), got(1, shop("Shop", "web", "1")), end(1, nil)},
			"1 Shop/web <unknown> succeeded",
		},
		"its own object, before another one of its name from the cache": {
			[]lens.Event{begin(1, "web"), got(1, shop("Shop", "web", "1")), read(1, "apps", "Deployment", "web"), end(1, nil)},
			"1 Shop/web <unknown> succeeded",
		},
		"another one of its name, before the mark of its own arrives": {
			[]lens.Event{begin(1, "web"), got(1, shop("Deployment", "web", "1")), late, end(1, nil)},
			"1 Shop/web <unknown> succeeded",
		},
		"its own object, which is gone": {
			[]lens.Event{delivered("ADDED", shop("Shop", "db", "1"), 0), wrote(1, 0, "update", shop("Shop", "db", "2")), begin(2, "web"), missing, read(2, "apps", "Deployment", "web"), end(2, nil)},
			"2 Shop/web <unknown> succeeded\n1 Shop/db <created Shop/db> [update Shop/db] succeeded",
		},
		"an object of an unknown kind, and another one of its name": {
			[]lens.Event{begin(1, "web"), unknown, read(1, "apps", "Deployment", "web"), end(1, nil)},
			"1 /web <unknown> succeeded",
		},
		"an object of which only metadata is watched": {
			[]lens.Event{
				begin(1, "web"), got(1, shop("Shop", "web", "1")), got(1, secret("1")), end(1, nil), metadata("2"),
				begin(2, "web"), got(2, shop("Shop", "web", "1")), got(2, secret("2")), end(2, nil),
			},
			"1 Shop/web <unknown> succeeded\n2 Shop/web <updated Secret/shared> succeeded",
		},
		"a list": {
			[]lens.Event{
				begin(1, "web"), got(1, shop("Shop", "web", "1")), got(1, secret("1")), end(1, nil), metadata("2"),
				begin(2, "web"), got(2, shop("Shop", "web", "1")), list, end(2, nil),
			},
			"1 Shop/web <unknown> succeeded\n2 Shop/web <updated Secret/shared> succeeded",
		},
		"a reconcile that has ended": {
			[]lens.Event{begin(1, "web"), end(1, nil), got(1, shop("Shop", "web", "1"))},
			"1 /web <unknown> succeeded",
		},
	} {
		if got := say(play(one.events...)); got != one.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, one.want)
		}
	}
}
