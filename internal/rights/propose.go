// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opdock/opdock/internal/lens"
)

// Role is a proposed role: a ClusterRole if it has no namespace.
type Role struct {
	Namespace string              `json:"namespace,omitempty"`
	Rules     []rbacv1.PolicyRule `json:"rules"`
}

// grantedAt is a right at one place.
type grantedAt struct {
	Right
	namespace string
}

// Propose makes roles of rights, with as few rules as are easy to read: one for all resources of a group that have the same
// verbs. Roles are sorted by namespace, and the one of the cluster is the first.
func Propose(grants []Grant) []Role {
	names := map[grantedAt][]string{} // nil: all
	for _, grant := range grants {
		namespaces := grant.Namespaces
		if len(namespaces) == 0 {
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			at := grantedAt{grant.Right, namespace}
			known, again := names[at]
			switch {
			case len(grant.Names) == 0 || again && known == nil:
				names[at] = nil
			default:
				known = append(slices.Clone(known), grant.Names...)
				slices.Sort(known)
				names[at] = slices.Compact(known)
			}
		}
	}
	byNamespace := map[string][]rbacv1.PolicyRule{}
	for _, at := range slices.SortedFunc(maps.Keys(names), func(a, b grantedAt) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), compareRights(a.Right, b.Right))
	}) {
		if everywhere, ok := names[grantedAt{at.Right, ""}]; ok && everywhere == nil && at.namespace != "" {
			continue // the role of the cluster grants it
		}
		byNamespace[at.namespace] = addRight(byNamespace[at.namespace], at.Right, names[at])
	}
	roles := []Role{}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		roles = append(roles, Role{Namespace: namespace, Rules: joinResources(byNamespace[namespace])})
	}
	return roles
}

// addRight adds a verb to the rule of its resource.
func addRight(rules []rbacv1.PolicyRule, right Right, names []string) []rbacv1.PolicyRule {
	for i := range rules {
		same := right.URL != "" && slices.Equal(rules[i].NonResourceURLs, []string{right.URL}) ||
			right.URL == "" && slices.Equal(rules[i].APIGroups, []string{right.Group}) && slices.Equal(rules[i].Resources, []string{right.Resource})
		if same && slices.Equal(rules[i].ResourceNames, names) {
			rules[i].Verbs = append(rules[i].Verbs, right.Verb)
			return rules
		}
	}
	rule := rbacv1.PolicyRule{Verbs: []string{right.Verb}, ResourceNames: names}
	if right.URL != "" {
		rule.NonResourceURLs = []string{right.URL}
	} else {
		rule.APIGroups, rule.Resources = []string{right.Group}, []string{right.Resource}
	}
	return append(rules, rule)
}

// joinResources makes one rule of those that differ only in the resource, or only in the URL.
func joinResources(rules []rbacv1.PolicyRule) (joined []rbacv1.PolicyRule) {
	for _, rule := range rules {
		i := slices.IndexFunc(joined, func(other rbacv1.PolicyRule) bool {
			return slices.Equal(other.Verbs, rule.Verbs) && slices.Equal(other.APIGroups, rule.APIGroups) && slices.Equal(other.ResourceNames, rule.ResourceNames) &&
				(len(other.NonResourceURLs) == 0) == (len(rule.NonResourceURLs) == 0)
		})
		if i < 0 {
			joined = append(joined, rule)
			continue
		}
		joined[i].Resources = append(joined[i].Resources, rule.Resources...)
		joined[i].NonResourceURLs = append(joined[i].NonResourceURLs, rule.NonResourceURLs...)
	}
	return joined
}

// Objects are roles as objects with a name, and with bindings to a service account if that is known.
func Objects(roles []Role, name, identity string) (objects []any) {
	namespace, account, bound := lens.ServiceAccount(identity)
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: namespace}}
	bindingName := strings.TrimSuffix(name, "-role") + "-rolebinding"
	for _, role := range roles {
		rules := make([]rbacv1.PolicyRule, 0, len(role.Rules))
		for _, rule := range role.Rules {
			rule.Verbs = slices.Sorted(slices.Values(rule.Verbs)) // as controller-gen writes them
			rules = append(rules, rule)
		}
		meta := metav1.ObjectMeta{Name: name, Namespace: role.Namespace}
		bindingMeta := metav1.ObjectMeta{Name: bindingName, Namespace: role.Namespace}
		reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		if role.Namespace == "" {
			objects = append(objects, &rbacv1.ClusterRole{TypeMeta: typeOf("ClusterRole"), ObjectMeta: meta, Rules: rules})
			if bound {
				objects = append(objects, &rbacv1.ClusterRoleBinding{TypeMeta: typeOf("ClusterRoleBinding"), ObjectMeta: bindingMeta, RoleRef: reference, Subjects: subjects})
			}
			continue
		}
		reference.Kind = "Role"
		objects = append(objects, &rbacv1.Role{TypeMeta: typeOf("Role"), ObjectMeta: meta, Rules: rules})
		if bound {
			objects = append(objects, &rbacv1.RoleBinding{TypeMeta: typeOf("RoleBinding"), ObjectMeta: bindingMeta, RoleRef: reference, Subjects: subjects})
		}
	}
	return objects
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
