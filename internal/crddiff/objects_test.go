// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crddiff

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/opdock/opdock/internal/golden"
)

func file(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// ships returns the objects that the old CRD accepts.
func ships(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(file(t, "objects.yaml")), 4096)
	var found []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			t.Fatal(err)
		case object.Object != nil:
			found = append(found, object)
		}
	}
}

func named(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	for _, ship := range ships(t) {
		if ship.GetName() == name {
			return ship
		}
	}
	t.Fatalf("there is no ship %s", name)
	return nil
}

func TestValidate(t *testing.T) {
	objects := ships(t)
	if invalid := Validate(parse(t, file(t, "old.yaml")), objects); len(invalid) > 0 {
		t.Fatalf("the old CRD must accept all: %v", invalid)
	}
	got := map[string]string{}
	for _, one := range Validate(parse(t, file(t, "new.yaml")), objects) {
		got[one.Object.GetName()] = strings.Join(one.Errors, "; ")
		if one.Version != "v1" || one.Name != "Ship "+one.Object.GetName() {
			t.Errorf("got %q in version %q", one.Name, one.Version)
		}
	}
	for name, want := range map[string]string{
		"too-many":       `spec.crew: Invalid value: 101: spec.crew in body should be less than or equal to 100`,
		"steamer":        `spec.engine: Unsupported value: "steam": supported values: "sail", "diesel"`,
		"weighs":         `spec.cargo[0].weight: Invalid value: "integer": spec.cargo[0].weight in body must be of type string: "integer"`,
		"twice":          `spec.cargo[1]: Duplicate value: {"name":"tea"}`,
		"nameless":       `spec.cargo[0].name: Required value`,
		"short-of-hands": `spec: Invalid value: a sailing ship needs a crew of 5`,
		"long-flag":      `spec.flags.b: Too long: may not be more than 3 bytes`,
	} {
		if got[name] != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("these are valid: %v", got)
	}
	if !reflect.DeepEqual(objects, ships(t)) {
		t.Error("the objects were changed")
	}
}

func TestPruned(t *testing.T) {
	updated := parse(t, file(t, "new.yaml"))
	object := named(t, "loses-fields")
	object.Object["status"] = map[string]any{"position": "here", "speed": int64(3)}
	before := object.DeepCopy()
	got := Pruned(updated, object)
	want := []string{"spec.cargo[0].fragile", "spec.notes.captain", "spec.notes.mood", "spec.port", "status.speed"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !reflect.DeepEqual(object, before) {
		t.Error("the object was changed")
	}
	if got := Pruned(updated, named(t, "fine")); len(got) > 0 {
		t.Errorf("got %q for an object that loses nothing", got)
	}
}

func TestObjectsInOtherVersions(t *testing.T) {
	updated := parse(t, file(t, "new.yaml"))
	object := named(t, "steamer")
	object.SetAPIVersion("sea.example.com/v1alpha1")
	// Nothing converts, so the object is read with the schema of the storage version.
	if invalid := Validate(updated, []*unstructured.Unstructured{object}); len(invalid) != 1 || invalid[0].Version != "v1" {
		t.Errorf("got %v", invalid)
	}
	if got := Pruned(updated, object); !reflect.DeepEqual(got, []string{"spec.port"}) {
		t.Errorf("got %q", got)
	}
	updated.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	invalid := Validate(updated, []*unstructured.Unstructured{object})
	if len(invalid) != 1 || !strings.Contains(invalid[0].Errors[0], "version v1alpha1 is not in the CRD; its webhook must convert the object first") {
		t.Errorf("got %v", invalid)
	}
	object.SetAPIVersion("lake.example.com/v1")
	invalid = Validate(updated, []*unstructured.Unstructured{object})
	if len(invalid) != 1 || !strings.Contains(invalid[0].Errors[0], "the object is a Ship.lake.example.com, not a Ship.sea.example.com") {
		t.Errorf("got %v", invalid)
	}
}

func TestText(t *testing.T) {
	old, updated := parse(t, file(t, "old.yaml")), parse(t, file(t, "new.yaml"))
	var text bytes.Buffer
	if err := Text(&text, Compare([]*crd{old}, []*crd{updated}), 100, true); err != nil {
		t.Fatal(err)
	}
	text.WriteString("\n---\n")
	if err := InvalidText(&text, Validate(updated, ships(t)), 80); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "upgrade", text.String())

	for _, test := range []struct {
		differences []Difference
		want        string
	}{
		{nil, "The CRDs do not differ.\n"},
		{[]Difference{{CRD: "a.b", Severity: Compatible, Message: "c"}}, "The CRDs differ: 0 breaking, 0 risky, 1 compatible.\n"},
		{
			[]Difference{{CRD: "a.b", Severity: Breaking, Message: "Gone."}, {CRD: "a.b", Severity: Compatible, Message: "c"}},
			"The CRDs differ: 1 breaking, 0 risky, 1 compatible.\n\nbreaking    a.b\n            Gone.\n\nCompatible differences are not listed.\n",
		},
	} {
		text.Reset()
		if err := Text(&text, test.differences, 0, false); err != nil || text.String() != test.want {
			t.Errorf("got  %q\nwant %q (%v)", text.String(), test.want, err)
		}
	}
	text.Reset()
	if err := InvalidText(&text, nil, 0); err != nil || text.String() != "All objects validate.\n" {
		t.Errorf("got %q", text.String())
	}
}
