// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWatchesOfMetadata are compared with what they delivered themselves, beside watches of whole objects.
func TestWatchesOfMetadata(t *testing.T) {
	t.Parallel()
	object := func(kind string, version int, metadata, rest string) string {
		api := "v1"
		if kind == partialMetadata {
			api = "meta.k8s.io/v1"
		}
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x","namespace":"a","uid":"u","resourceVersion":"%d"%s}%s}`, api, kind, version, metadata, rest)
	}
	const first, second = `,"annotations":{"pin":"1111"}`, `,"annotations":{"pin":"2222"},"managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-01-01T12:00:00Z","fieldsV1":{}}]`
	for _, one := range []struct{ resource, kind, want string }{
		{"configmaps", "ConfigMap", `metadata.annotations.pin "1111" "2222" by kubectl`},
		{"configmaps", "", `metadata.annotations.pin "1111" "2222" by kubectl`},
		{"secrets", "Secret", `metadata.annotations.pin "(hidden)" "(hidden)" by kubectl`},
		{"secrets", "", `metadata.annotations.pin "(hidden)" "(hidden)" by kubectl`}, // no whole Secret was seen
	} {
		d := newDesk(t)
		place := Resource{Version: "v1", Resource: one.resource}
		whole := func(version int, metadata string) {
			if one.kind != "" {
				d.show(1, place, "MODIFIED", object(one.kind, version, metadata, `,"data":{"key":"value"}`))
			}
		}
		say := func(got *Delivery) string {
			switch c := got.Change; {
			case c == nil:
				return "unknown"
			case c.None:
				return "none"
			case len(c.Fields) == 0:
				return "something"
			default:
				text := []string{c.Fields[0].Path, c.Fields[0].Old, c.Fields[0].New}
				for _, by := range c.By {
					text = append(text, "by", by.Manager)
				}
				return strings.Join(text, " ")
			}
		}
		whole(1, first)
		for i, step := range []struct {
			what     string
			version  int
			metadata string
			want     string
		}{
			{"ADDED", 1, first, "unknown"},
			{"MODIFIED", 2, second, one.want},
			{"MODIFIED", 3, second, "something"}, // of the data
			{"ADDED", 3, second, "none"},
		} {
			whole(step.version, step.metadata)
			if got := say(d.show(2, place, step.what, object(partialMetadata, step.version, step.metadata, ""))); got != step.want {
				t.Errorf("%+v: step %d is %s, not %s", one, i, got, step.want)
			}
		}
		if one.kind != "" {
			if got := d.show(1, place, "MODIFIED", object(one.kind, 4, second, `,"data":{"key":"value"}`)); got.Change == nil || !got.Change.None {
				t.Errorf("%+v: the whole object is compared with its metadata: %+v", one, got.Change)
			}
		}
		d.show(2, place, "DELETED", object(partialMetadata, 5, second, ""))
		d.show(1, place, "DELETED", object(one.kind, 5, second, ""))
		if len(d.memory.entries) > 0 || d.memory.size != 0 {
			t.Errorf("%+v: at the end, %d bytes are kept", one, d.memory.size)
		}
	}
}

// TestListsOfMetadata fill caches, with a version or followed by a watch. And a list that a reconcile reads tells the kind.
func TestListsOfMetadata(t *testing.T) {
	t.Parallel()
	list := func(kind, version string) string {
		return fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"%sList","metadata":{"resourceVersion":"7"},"items":[`+
			`{"metadata":{"name":"x","namespace":"a","uid":"u","resourceVersion":%q,"labels":{"v":%[2]q}}}]}`, kind, version)
	}
	place := Resource{Version: "v1", Resource: "pods"}
	for _, from := range []string{"0", ""} {
		d := newDesk(t)
		body := list(partialMetadata, "1")
		decoded, err := decode([]byte(body), encodedJSON)
		if err != nil {
			t.Fatal(err)
		}
		x := &exchange{began: time.Now(), Call: Call{Request: Request{ID: 5, Verb: "list", Status: 200, Resource: place, Query: &Query{ResourceVersion: from}}}}
		d.understand(x, decoded, []byte(body), encodedJSON)
		if from == "" {
			followed := d.lists.follow(&Request{Verb: "watch", Resource: place, Query: &Query{ResourceVersion: "7"}}, x.began)
			if followed == nil || len(d.followed(followed)) != 1 {
				t.Fatal("no watch follows the list")
			}
		}
		got := d.show(6, place, "MODIFIED", `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"x","namespace":"a","uid":"u","resourceVersion":"8","labels":{"v":"8"}}}`)
		if got.Change == nil || got.Change.From != "1" || len(got.Change.Fields) != 1 || got.Change.Fields[0].Path != "metadata.labels.v" {
			t.Errorf("after a list from %q, the change is %+v", from, got.Change)
		}
		if got.Object.Kind != partialMetadata {
			t.Errorf("the kind is %s", got.Object.Kind)
		}
		d.answer("list", place, `{"apiVersion":"v1","kind":"PodList","metadata":{},"items":[]}`)
		if got := d.show(6, place, "DELETED", `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"x","namespace":"a","uid":"u","resourceVersion":"9"}}`); got.Object.Kind != "Pod" {
			t.Errorf("after a list of pods, the kind is %s", got.Object.Kind)
		}
	}
}
