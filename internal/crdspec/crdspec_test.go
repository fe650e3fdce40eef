// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crdspec

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"
)

const definition = `
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Frigate, plural: frigates, singular: frigate, shortNames: [fr]}
  versions:
  - {name: v1alpha1, served: false}
  - {name: v1beta1, served: true}
  - {name: v1, served: true, storage: true, subresources: {status: {}}}
`

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestOf(t *testing.T) {
	t.Parallel()
	got := Of(parse(t, definition))
	if text := fmt.Sprintf("%v %v %v %v %v %v", got.GroupKind(), got.Scope, got.Plural, got.Singular, got.ShortNames, got.ServedVersions()); text !=
		"Frigate.sea.example.com Namespaced frigates frigate [fr] [sea.example.com/v1beta1 sea.example.com/v1]" {
		t.Errorf("the spec is %s", text)
	}
	if last := got.Versions[2]; !last.Storage || last.Fields["subresources"] == nil {
		t.Errorf("the stored version is %+v", last)
	}
	if empty := Of(parse(t, `spec: {versions: [text], names: 1}`)); len(empty.ServedVersions()) != 0 || empty.Kind != "" {
		t.Errorf("a spec of other types is %+v", empty)
	}
}

func TestIsServed(t *testing.T) {
	t.Parallel()
	spec := Of(parse(t, definition))
	for name, test := range map[string]struct {
		server server
		want   bool
	}{
		"no version":         {server{}, false},
		"one version":        {server{"sea.example.com/v1": "frigates"}, false},
		"all versions":       {server{"sea.example.com/v1": "frigates", "sea.example.com/v1beta1": "frigates"}, true},
		"another plural":     {server{"sea.example.com/v1": "ships", "sea.example.com/v1beta1": "frigates"}, false},
		"what is not served": {server{"sea.example.com/v1alpha1": "frigates"}, false},
	} {
		if got := spec.IsServed(test.server); got != test.want {
			t.Errorf("%s: IsServed is %t", name, got)
		}
	}
}

func TestIsEstablished(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`: false,
		`status: {conditions: [text, {type: NamesAccepted, status: "True"}]}`:                                false,
		`status: {conditions: [{type: Established, status: "False"}]}`:                                       false,
		`status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}`: true,
	} {
		if got := IsEstablished(parse(t, text)); got != want {
			t.Errorf("%s: IsEstablished is %t", text, got)
		}
	}
}

// server has one resource for each group and version.
type server map[string]string

var errNotFound = errors.New("not found")

func (s server) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	name, found := s[version]
	if !found {
		return nil, errNotFound
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: name + "/status"}, {Name: name}}}, nil
}

func (server) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return nil, nil, errNotFound
}

func (server) ServerPreferredResources() ([]*metav1.APIResourceList, error) { return nil, errNotFound }

func (server) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return nil, errNotFound
}

var _ discovery.ServerResourcesInterface = server{}
