// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestRolesGiveAwayWhatTheyGrant(t *testing.T) {
	t.Parallel()
	role := &unstructured.Unstructured{}
	const text = `
kind: Role
metadata: {name: peer, namespace: shop}
rules:
- {apiGroups: ["", apps], resources: [endpoints, pods/status], verbs: [get]}
- {apiGroups: [""], resources: [secrets], resourceNames: [a, b], verbs: [get]}
- {nonResourceURLs: [/metrics], verbs: [get]}
`
	if err := yaml.Unmarshal([]byte(text), &role.Object); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, right := range givenAway(role) {
		place := right.Resource
		got = append(got, fmt.Sprintf("%s %s %s/%s %s/%s", right.Verb, place.Group, place.Resource, place.Subresource, place.Namespace, place.Name))
	}
	const want = "get  endpoints/ shop/, get  pods/status shop/, get apps endpoints/ shop/, get apps pods/status shop/, get  secrets/ shop/a, get  secrets/ shop/b"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, ", "), want)
	}
}
