// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// User is the identity of the simulated kubelets, and the name of its role and binding. It is not
// one of system:nodes, as the Node authorizer lets a kubelet act for one node only.
const User = "opdock:nodes"

// ClusterRole grants what Run needs and nothing more.
func ClusterRole() *rbacv1.ClusterRole {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: User},
		Rules: []rbacv1.PolicyRule{
			rule("", "nodes", "list", "watch"),
			rule("", "nodes/status", "patch"),
			rule("", "pods", "list", "watch", "delete"),
			rule("", "pods/status", "update"),
			rule("", "events", "create", "patch"),
			rule("coordination.k8s.io", "leases", "list", "watch", "create", "update"),
		},
	}
}

// ClusterRoleBinding binds the role to User.
func ClusterRoleBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: User},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: User},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: User}},
	}
}
