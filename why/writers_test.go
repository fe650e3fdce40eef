// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/why/diff"
)

// versions are two of an object, as a server has answered with them, and when.
type versions struct {
	Old, Now json.RawMessage
	Seen     time.Time
}

func recordedAs(name string) string {
	return filepath.Join("testdata", "writers", strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name)+".json")
}

// TestWritersOfRecordedVersions says who wrote what, of objects whose managed fields are those of a real API server.
// TestWritersOnAServer makes and checks the files.
func TestWritersOfRecordedVersions(t *testing.T) {
	for _, s := range writings {
		t.Run(s.name, func(t *testing.T) {
			data, err := os.ReadFile(recordedAs(s.name))
			if err != nil {
				t.Fatal(err)
			}
			var v versions
			if err := json.Unmarshal(data, &v); err != nil {
				t.Fatal(err)
			}
			s.check(t, decodeObject(t, v.Old), decodeObject(t, v.Now), v.Seen)
			s.check(t, decodeGeneric(t, v.Old), decodeGeneric(t, v.Now), v.Seen)
		})
	}
}

// check compares what is said of two versions with what is wanted, with all managed fields and with what caches keep of them.
func (s *writing) check(t *testing.T, old, now client.Object, seen time.Time) {
	t.Helper()
	found := testDiffer.Compare(old, now, false)
	if got := managers(writersOf(old, now, &found, seen)); got != s.want {
		t.Errorf("%q has written, want %q: %+v", got, s.want, found.Changes)
	}
	for _, object := range []client.Object{old, now} {
		if _, err := KeepWriters(nil)(object); err != nil {
			t.Fatal(err)
		}
	}
	if got := managers(writersOf(old, now, &found, seen)); got != s.wantDropped {
		t.Errorf("%q has written as far as caches know, want %q: %+v", got, s.wantDropped, found.Changes)
	}
}

func decodeObject(t *testing.T, data []byte) client.Object {
	t.Helper()
	object, err := runtime.Decode(clientgoscheme.Codecs.UniversalDeserializer(), data)
	if err != nil {
		t.Fatal(err)
	}
	return object.(client.Object)
}

func decodeGeneric(t *testing.T, data []byte) client.Object {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestWriters(t *testing.T) {
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	entry := func(manager, subresource string, second int64) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", Subresource: subresource, Time: at(second)}
	}
	all := func(entries ...metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return entries }
	tests := map[string]struct {
		old, now []metav1.ManagedFieldsEntry
		path     string
		gone     bool
		want     string
	}{
		"unknown":                            {nil, nil, "spec.replicas", false, ""},
		"a new one":                          {all(entry("a", "", 1)), all(entry("a", "", 1), entry("b", "", 2)), "spec", false, "b"},
		"once more":                          {all(entry("a", "", 1), entry("b", "", 1)), all(entry("a", "", 5), entry("b", "", 1)), "spec", false, "a"},
		"in the same second":                 {all(entry("a", "", 1), entry("b", "", 3), entry("c", "status", 3)), all(entry("a", "", 1), entry("b", "", 3), entry("c", "status", 3)), "spec", false, "b"},
		"a status in the same second":        {all(entry("a", "", 1), entry("c", "status", 3)), all(entry("a", "", 1), entry("c", "status", 3)), "status.replicas", false, "c (status)"},
		"after another manager's last write": {all(entry("a", "", 1), entry("c", "status", 3)), all(entry("a", "", 1), entry("c", "status", 3)), "spec", false, ""},
		"two who may have":                   {all(entry("a", "", 3), entry("b", "", 3)), all(entry("a", "", 3), entry("b", "", 3)), "spec", false, ""},
		"gone":                               {all(entry("a", "", 3)), all(entry("a", "", 3)), "metadata.labels.a", true, ""},
		"gone, by an apply":                  {all(entry("a", "", 1)), all(entry("a", "", 3)), "metadata.labels.a", true, "a"},
		"long ago":                           {all(entry("a", "", -60)), all(entry("a", "", -60)), "spec", false, ""},
		"a clock that is far ahead":          {all(entry("a", "", 60)), all(entry("a", "", 60)), "spec", false, ""},
		"a deletion":                         {all(entry("a", "", 3)), all(entry("a", "", 3)), "metadata.deletionTimestamp", false, ""},
		"taken over, which is no write":      {all(entry("a", "", 1)), all(entry("a", "", 1), entry("b", "scale", 4)), "spec.replicas", false, "b (scale)"},
		"entries without a time are silent":  {all(metav1.ManagedFieldsEntry{Manager: "a"}), all(metav1.ManagedFieldsEntry{Manager: "a"}), "spec", false, ""},
		"older ones were put together":       {all(entry("a", "", 1), entry("b", "", 1)), all(entry("ancient-changes", "", 1), entry("c", "", 3)), "spec", false, "c"},
		"older ones were put together alone": {all(entry("a", "", 1), entry("b", "", 1)), all(entry("ancient-changes", "", 1)), "spec", true, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old, now := pod("a"), pod("a")
			old.ManagedFields, now.ManagedFields = test.old, test.now
			found := diff.Comparison{Changes: []Change{{Path: test.path}}}
			if !test.gone {
				found.Given = 1
			}
			if got := managers(writersOf(old, now, &found, time.Unix(4, 0))); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestFieldsAreReadWithinBounds has an owner that is known by its fields, unless these are too many to be looked at.
func TestFieldsAreReadWithinBounds(t *testing.T) {
	at := metav1.Unix(3, 0)
	for want, others := range map[string]int{"owner": 10, "": 5_000} {
		var fields strings.Builder
		fields.WriteString(`{"f:data":{"f:k":{}`)
		for i := range others {
			fmt.Fprintf(&fields, `,"f:key-%d":{}`, i)
		}
		fields.WriteString("}}")
		now := pod("a")
		now.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "owner", Operation: "Update", Time: &at, FieldsV1: metav1.NewFieldsV1(fields.String())},
			{Manager: "other", Operation: "Update", Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:else":{}}}`)},
			{Manager: "third", Operation: "Apply", Time: &at},
		}
		found := diff.Comparison{Changes: []Change{{Path: "data.k", Old: "1", New: "2"}}, Given: 1}
		if got := managers(writersOf(now, now, &found, at.Time)); got != want {
			t.Errorf("with %d fields, %q has written, want %q", others, got, want)
		}
	}
}

func TestAnObjectInPlaceOfAnotherOneIsItsCreators(t *testing.T) {
	old, now := pod("a"), pod("a")
	now.UID = "another"
	at := metav1.Unix(1, 0)
	old.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "first", Operation: "Update", Time: &at}}
	now.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "first", Operation: "Update", Time: &at}}
	if _, _, by := Compare(old, now); managers(by) != "first" {
		t.Errorf("by %q", managers(by))
	}
}

func TestPathsAreReadAsTheyAreWritten(t *testing.T) {
	for _, path := range [][]diff.Step{
		{{Name: "spec"}, {Name: "replicas"}},
		{{Name: "metadata"}, {Name: "labels"}, {Name: "app.kubernetes.io/name", Kind: diff.StepKey}},
		{{Name: "spec"}, {Name: "containers"}, {Kind: diff.StepElement, Key: "name", Value: "app"}, {Name: "image"}},
		{{Name: "spec"}, {Name: "a"}, {Kind: diff.StepElement, Key: "id", Value: "1"}, {Kind: diff.StepElement, Key: "id", Value: "2"}},
	} {
		text := string(diff.AppendPath(nil, path))
		read, ok := diff.ParsePath(text)
		if !ok || string(diff.AppendPath(nil, asKeys(read))) != text || len(read) != len(path) {
			t.Errorf("%s is read as %+v", text, read)
		}
	}
	for _, path := range []string{"", "spec.very…", "spec[a]b", "spec[a"} {
		if read, ok := diff.ParsePath(path); ok {
			t.Errorf("%s is read as %+v", path, read)
		}
	}
}

// asKeys marks names as those of keys, which are written in brackets where that is needed.
func asKeys(path []diff.Step) []diff.Step {
	for i := range path {
		if path[i].Kind == diff.StepField {
			path[i].Kind = diff.StepKey
		}
	}
	return path
}
