// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-tools/pkg/rbac"
)

// controller-gen must read each value as it was written.
func TestMarkersCanBeRead(t *testing.T) {
	for name, quoted := range map[string]bool{
		"web": false, "manager-role": false, "certs.example.com": false, "v1": false, "a53ef12ab.example.com": false,
		"53ef12ab.example.com": true, "80807133.example.com": true, "my-5e-x": true, "web.5e": true,
		"system:auth-delegator": true, "a,b": true, `say "x"`: true,
	} {
		rule := rbacv1.PolicyRule{APIGroups: []string{"", "apps.example.com"}, Resources: []string{"leases", "pods/exec"}, ResourceNames: []string{name}, Verbs: []string{"get", "*"}}
		line := formatMarker(rule, "", "")
		parsed, err := rbac.RuleDefinition.Parse(strings.TrimPrefix(line, "+"))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		got := parsed.(rbac.Rule)
		if !slices.Equal(got.ResourceNames, rule.ResourceNames) || !slices.Equal(got.Groups, rule.APIGroups) || !slices.Equal(got.Resources, rule.Resources) {
			t.Errorf("%s was read as %+v", line, got)
		}
		if strings.Contains(line, `resourceNames="`) != quoted {
			t.Errorf("got %s", line)
		}
	}
}
