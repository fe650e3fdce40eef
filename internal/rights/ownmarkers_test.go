// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-tools/pkg/rbac"
)

func TestOwnMarkers(t *testing.T) {
	for name, test := range map[string]struct {
		roles string // of the markers; a dash for none
		bound string
		rules []Rule
		want  string
	}{
		"one is bound":                          {roles: "a-role b-role", bound: "a-role", want: "a-role"},
		"both are bound":                        {roles: "a-role b-role", bound: "b-role leader a-role", want: "a-role b-role"},
		"kustomize has renamed them":            {roles: "a-role b-role", bound: "ship-b-role-v2", want: "b-role"},
		"one is the end of the other":           {roles: "role b-role", bound: "ship-b-role", want: "b-role"},
		"a part of a word is no name":           {roles: "age manager", bound: "manager", want: "manager"},
		"the default one":                       {roles: "- b-role", bound: "ship-manager-role leader", want: "-"},
		"not the default one":                   {roles: "- b-role", bound: "b-role", want: "b-role"},
		"the default one has another name":      {roles: "- b-role", bound: "b-role captain", rules: []Rule{rule("ClusterRole captain", "", "sea", "unnamed", "get")}, want: "- b-role"},
		"another role has one of its rights":    {roles: "- b-role", bound: "b-role captain", rules: []Rule{rule("ClusterRole captain", "", "sea", "unnamed,boats", "get")}, want: "b-role"},
		"no name in markers":                    {roles: "-", bound: "captain", want: "-"},
		"no manifests":                          {roles: "- a-role", want: "-"},
		"no manifests, and all name a role":     {roles: "a-role", want: "a-role"},
		"no manifests, and all name some roles": {roles: "a-role b-role", want: ""},
		"none of them is bound":                 {roles: "b-role", bound: "captain", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			var markers []Marker
			for _, role := range strings.Fields(test.roles) {
				m := Marker{Rule: rbac.Rule{Groups: []string{"sea"}, Resources: []string{"of-" + role}, Verbs: []string{"get"}, RoleName: strings.TrimPrefix(role, "-")}}
				if role == "-" {
					m.Resources[0] = "unnamed"
				}
				markers = append(markers, m)
			}
			own, others := OwnMarkers(markers, Granted{Bound: strings.Fields(test.bound), Rules: test.rules})
			var got []string
			for _, m := range own {
				if m.RoleName == "" {
					m.RoleName = "-"
				}
				got = append(got, m.RoleName)
			}
			if !slices.Equal(got, strings.Fields(test.want)) || len(own)+len(others) != len(markers) {
				t.Errorf("own are %q of %d, and %d others", got, len(markers), len(others))
			}
		})
	}
}
