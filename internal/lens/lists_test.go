// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/testenv"
)

// TestInformersThatListTheNewestVersion reads what clients in other languages do: a list without a version, perhaps in parts, and a
// watch from where it ended.
func TestInformersThatListTheNewestVersion(t *testing.T) {
	t.Parallel()
	deployment := func(name, version string, replicas int) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"namespace":"shop","uid":%q,"resourceVersion":%q},"spec":{"replicas":%d}}`, name, name, version, replicas)
	}
	for name, test := range map[string]struct {
		lists []string
		watch string
		want  string
	}{
		"a list and its watch":  {[]string{""}, "resourceVersion=7", "ADDED web initial, ADDED db initial, MODIFIED web spec.replicas"},
		"in parts":              {[]string{"limit=1", "limit=1&continue=x"}, "resourceVersion=7", "ADDED web initial, ADDED db initial, MODIFIED web spec.replicas"},
		"again from the start":  {[]string{"limit=1", "", "limit=1", "limit=1&continue=x"}, "resourceVersion=7", "ADDED web initial, ADDED db initial, MODIFIED web spec.replicas"},
		"a watch from later on": {[]string{""}, "resourceVersion=8", "MODIFIED web"},
		"a watch of others":     {[]string{""}, "resourceVersion=7&labelSelector=a", "MODIFIED web"},
		"a list of others":      {[]string{"fieldSelector=metadata.name%3Dx"}, "resourceVersion=7", "MODIFIED web"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				query := r.URL.Query()
				items := []string{deployment("web", "2", 1), deployment("db", "3", 1)}
				switch {
				case query.Get("watch") != "":
					fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", deployment("web", "9", 5))
					return
				case query.Get("continue") != "":
					items = items[1:]
				case query.Get("limit") != "":
					items = items[:1]
				}
				fmt.Fprintf(w, `{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{"resourceVersion":"7"},"items":[%s]}`, strings.Join(items, ","))
			})
			for sent, query := range append(test.lists, "watch=true&"+test.watch) {
				s.read(s.request(http.MethodGet, "/apis/apps/v1/deployments?"+query, ""))
				testenv.Eventually(t, "the request is complete", func() error {
					ended := 0
					for _, e := range s.events() {
						if e.Request != nil && !e.Request.Open {
							ended++
						}
					}
					if ended <= sent {
						return fmt.Errorf("%d requests ended", ended)
					}
					return nil
				})
			}
			var got []string
			for _, e := range s.events() {
				if e.Delivery == nil {
					continue
				}
				said := e.Delivery.Type + " " + e.Delivery.Object.Name
				if e.Delivery.Initial {
					said += " initial"
				}
				if e.Delivery.Change != nil && len(e.Delivery.Change.Fields) > 0 {
					said += " " + e.Delivery.Change.Fields[0].Path
				}
				got = append(got, said)
			}
			if all := strings.Join(got, ", "); all != test.want {
				t.Errorf("got %s, want %s", all, test.want)
			}
		})
	}
}

// TestWatchesLongAfterAList begin at the same version by chance.
func TestWatchesLongAfterAList(t *testing.T) {
	t.Parallel()
	list, watch := &Request{Verb: "list", Query: &Query{}}, &Request{Verb: "watch", Query: &Query{ResourceVersion: "7"}}
	ended := time.Now()
	for after, want := range map[time.Duration]bool{-time.Millisecond: true, time.Second: true, time.Minute: false} {
		var l lists
		l.add(&listed{selection: selectionOf(list), resourceVersion: "7", at: ended}, false)
		if got := l.follow(watch, ended.Add(after)); (got != nil) != want {
			t.Errorf("after %s: %+v", after, got)
		}
		if len(l) > 0 {
			t.Errorf("after %s, the list is still kept", after)
		}
	}
}

func TestKeptListsTakeLittleRoom(t *testing.T) {
	t.Parallel()
	var l lists
	add := func(name string, objects int) {
		l.add(&listed{selection: selection{resource: name}, objects: make([]*Object, objects)}, false)
	}
	expect := func(count int) {
		t.Helper()
		if len(l) != count {
			t.Errorf("%d lists are kept, not %d", len(l), count)
		}
	}
	for i := range keptLists + 3 {
		add(strconv.Itoa(i), 1)
	}
	expect(keptLists)
	add("large", keptListed-2)
	expect(3)
	add("too large", keptListed+1)
	expect(0)
}
