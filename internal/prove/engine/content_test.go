// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/world"
)

func TestOtherText(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "",
		"hunter2":             "hunter3",
		"8080":                "8081",
		"9":                   "0",
		"https://db:5432":     "https://db:5433",
		"secret":              "secret2",
		"größe":               "größe2",
		"true":                "true",
		"Off":                 "Off",
		`{"a": 1}`:            "{\"a\": 1}\n",
		"key: value\n":        "key: value\n\n",
		"-----BEGIN\nEND----": "-----BEGIN\nEND----\n",
		"\xff\xfe":            "\xff\xfe",
	} {
		if got := otherText(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestOtherContent(t *testing.T) {
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, test := range map[string]struct {
		object, want map[string]any
	}{
		"ConfigMap": {
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"port": "80", "debug": "false"}},
			map[string]any{"port": "81", "debug": "false"},
		},
		"Secret": {
			map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"password": encoded("secret"), "key": encoded("\xff")}},
			map[string]any{"password": encoded("secret2"), "key": encoded("\xff")},
		},
		"nothing to change": {map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"debug": "false"}}, nil},
		"no data":           {map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, nil},
		"immutable":         {map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "data": map[string]any{"port": "80"}}, nil},
		"token":             {map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "data": map[string]any{"token": encoded("a")}}, nil},
		"another kind":      {map[string]any{"apiVersion": "example.com/v1", "kind": "Secret", "data": map[string]any{"port": encoded("80")}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: test.object}
			before := object.DeepCopy()
			if got := withOtherContent(object); !reflect.DeepEqual(got, test.want) {
				t.Errorf("the data is %v, want %v", got, test.want)
			}
			if !reflect.DeepEqual(object, before) {
				t.Error("the object has changed")
			}
		})
	}
}

// TestContentIsChangedOnlyIfTheOperatorDoesNotWriteIt: what it writes itself it would restore, and be right.
func TestContentIsChangedOnlyIfTheOperatorDoesNotWriteIt(t *testing.T) {
	state := world.State{}
	var others []*unstructured.Unstructured
	for _, name := range []string{"read", "written", "empty", "labeled"} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"port": "80"}}}
		object.SetNamespace("default")
		object.SetName(name)
		if name == "empty" {
			delete(object.Object, "data")
		}
		others = append(others, object)
		state[world.Key{Kind: "ConfigMap", Namespace: "default", Name: name}] = object
	}
	written := write{Moment: Moment{Verb: "update", Resource: "configmaps", Namespace: "default", Name: "written"}, object: "ConfigMap"}
	labeled := written
	labeled.Name, labeled.fields = "labeled", []string{"metadata.labels[team]"}
	c := &campaign{o: Options{Others: others}, reference: []*stage{{state: state, writes: []write{written, labeled}}}}
	var planned []string
	for _, p := range c.contentPlans(1) {
		planned = append(planned, fmt.Sprintf("%s %v", p.Object, p.Fresh))
	}
	if want := []string{"ConfigMap default/read true", "ConfigMap default/labeled true"}; !slices.Equal(planned, want) {
		t.Errorf("planned are %q, want %q", planned, want)
	}
}
