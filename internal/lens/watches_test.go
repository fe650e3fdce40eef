// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSeveralWatchesOfAnObject are not equally fast, and may be of different versions of the API.
func TestSeveralWatchesOfAnObject(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	show := func(watch uint64, apiVersion, what string, version int, isInitial bool) string {
		field := map[string]string{"v1": "size", "v1beta1": "count"}[apiVersion]
		event := fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"example.com/%s","kind":"Shop","metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":"%d"},"spec":{%q:%[3]d}}}`,
			what, apiVersion, version, field)
		w := &watching{id: watch, resource: Resource{Group: "example.com", Version: apiVersion, Resource: "shops"}, as: encodedJSON, initial: isInitial}
		change := d.delivery(&observation{watching: w, data: []byte(event), at: time.Now()}).Change
		switch {
		case change == nil:
			return "not known"
		case change.None:
			return "none"
		case len(change.Fields) != 1:
			return fmt.Sprintf("%+v", change.Fields)
		}
		return fmt.Sprintf("%s: %s to %s", change.Fields[0].Path, change.Fields[0].Old, change.Fields[0].New)
	}
	for i, step := range []struct {
		watch            uint64
		apiVersion, what string
		version          int
		isInitial        bool
		want             string
	}{
		{1, "v1", "ADDED", 1, true, "not known"},
		{2, "v1", "ADDED", 1, true, "none"},
		{1, "v1", "MODIFIED", 2, false, "spec.size: 1 to 2"},
		{1, "v1", "MODIFIED", 3, false, "spec.size: 2 to 3"},
		{2, "v1", "MODIFIED", 2, false, "spec.size: 1 to 2"}, // it is behind
		{2, "v1", "MODIFIED", 3, false, "spec.size: 2 to 3"},
		{3, "v1beta1", "ADDED", 3, true, "not known"},
		{3, "v1beta1", "MODIFIED", 4, false, "spec.count: 3 to 4"},
		{1, "v1", "MODIFIED", 4, false, "spec.size: 3 to 4"},
		{4, "v1", "MODIFIED", 5, false, "spec.size: 4 to 5"}, // one of the watches begins again
		{5, "v1", "MODIFIED", 5, false, "spec.size: 4 to 5"}, // and so does the other
		{6, "v1", "ADDED", 5, true, "none"},                  // and this is after a new list
		{7, "v1", "ADDED", 7, true, "spec.size: 5 to 7"},
		{8, "v1", "MODIFIED", 6, false, "spec.size: 5 to 6"},
		{9, "v1", "MODIFIED", 2, false, "not known"}, // no version goes backwards
		{10, "v1", "MODIFIED", 8, false, "spec.size: 7 to 8"},
		{11, "v1", "ADDED", 8, false, "none"}, // a watch begins again, and requests no version
	} {
		if got := show(step.watch, step.apiVersion, step.what, step.version, step.isInitial); got != step.want {
			t.Errorf("%d, %+v: the change is %s", i, step, got)
		}
		entry := d.memory.find(objectKey{"example.com", "shops", "a", "web"})
		for _, one := range entry.delivered {
			isCopy := func(other deliveredVersion) bool {
				return other.resourceVersion == one.resourceVersion && other.apiVersion == one.apiVersion && other.version != one.version
			}
			if slices.ContainsFunc(entry.delivered, isCopy) {
				t.Errorf("%d: version %s is kept twice", i, one.resourceVersion)
			}
		}
	}
	entry := d.memory.find(objectKey{"example.com", "shops", "a", "web"})
	if len(entry.delivered) != keptWatches || d.memory.size != entry.size() {
		t.Errorf("versions of %d watches are kept, in %d bytes", len(entry.delivered), d.memory.size)
	}
	web := Resource{Group: "example.com", Version: "v1beta1", Resource: "shops", Namespace: "a", Name: "web"}
	got := d.answer("update", web, `{"apiVersion":"example.com/v1beta1","kind":"Shop","metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":"9"},"spec":{"count":9}}`)
	if got.Change != nil {
		t.Errorf("a write in another version of the API changes %+v", got.Change)
	}
	got = d.answer("update", web, `{"apiVersion":"example.com/v1beta1","kind":"Shop","metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":"10"},"spec":{"count":10}}`)
	if got.Change == nil || len(got.Change.Fields) != 1 || got.Change.Fields[0].Path != "spec.count" {
		t.Errorf("the next one changes %+v", got.Change)
	}
}

// TestManyWatchesOfAnObject are more than are kept. All of them report the same changes.
func TestManyWatchesOfAnObject(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	shops := Resource{Group: "example.com", Version: "v1", Resource: "shops"}
	for version := range 2 * keptVersions {
		what := "MODIFIED"
		if version == 0 {
			what = "ADDED"
		}
		for watch := range 2 * keptWatches {
			got := d.show(uint64(watch+1), shops, what, fmt.Sprintf( //nolint:gosec // not negative
				`{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":"%d"},"spec":{"size":%[1]d}}`, version+1))
			if version > 0 && (got.Change == nil || len(got.Change.Fields) != 1 || got.Change.From != strconv.Itoa(version)) {
				t.Errorf("watch %d reports version %d as %+v", watch, version+1, got.Change)
			}
		}
	}
}

// TestDeletionsThatOneWatchReports have another watch that is behind, or from whose selection the object has not gone.
func TestDeletionsThatOneWatchReports(t *testing.T) {
	t.Parallel()
	shops := Resource{Group: "example.com", Version: "v1", Resource: "shops"}
	for _, selects := range []bool{false, true} {
		d := newDesk(t)
		show := func(watch uint64, what string, version int) *Change {
			event := fmt.Sprintf(
				`{"type":%q,"object":{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":"%d"},"spec":{"size":%[2]d}}}`,
				what, version)
			w := &watching{id: watch, resource: shops, as: encodedJSON, selects: selects}
			return d.delivery(&observation{watching: w, data: []byte(event), at: time.Now()}).Change
		}
		key := objectKey{"example.com", "shops", "a", "web"}
		show(1, "ADDED", 1)
		show(2, "ADDED", 1)
		show(2, "MODIFIED", 2)
		show(2, "DELETED", 3)
		if known := d.memory.find(key); (known.latest() != nil) != selects || d.memory.size != known.size() {
			t.Errorf("selects: %t: %d versions are kept in %d bytes", selects, len(known.versions), d.memory.size)
		}
		if got := show(1, "MODIFIED", 2); got == nil || got.From != "1" {
			t.Errorf("selects: %t: the other watch reports %+v", selects, got)
		}
		show(1, "DELETED", 3)
		if known := d.memory.find(key); len(known.delivered) != 0 || (known.latest() != nil) != selects || selects != (d.memory.size != 0) {
			t.Errorf("selects: %t: at the end, %d bytes are kept", selects, d.memory.size)
		}
		if !selects {
			continue
		}
		// It has only left both selections, and a write finds the version of before.
		web := Resource{Group: "example.com", Version: "v1", Resource: "shops", Namespace: "a", Name: "web"}
		got := d.answer("update", web, `{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":"4"},"spec":{"size":4}}`)
		if got.Change == nil || len(got.Change.Fields) != 1 {
			t.Errorf("a write to an object that no watch selects changes %+v", got.Change)
		}
	}
}

// TestChangesOfLargeObjects changes a field beyond the limit of the comparison. The change must still be counted.
func TestChangesOfLargeObjects(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var fields strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&fields, `"%05d":1,`, i)
	}
	show := func(version, last string) *Change {
		return d.show(1, Resource{Group: "example.com", Version: "v1", Resource: "shops"}, "MODIFIED", fmt.Sprintf(
			`{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":%q},"spec":{%s"last":%s}}`, version, fields.String(), last)).Change
	}
	show("1", "1")
	if got := show("2", "2"); got == nil || got.None || got.Count() != 1 {
		t.Errorf("the change is %+v", got)
	}
}
