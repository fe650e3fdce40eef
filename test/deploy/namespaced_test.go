// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/rights"
)

// TestAManagerOfSomeNamespacesNeedsNoRightsInOthers grants what the chart grants if it is given a list of namespaces.
func TestAManagerOfSomeNamespacesNeedsNoRightsInOthers(t *testing.T) {
	c := fleettest.Client(t)
	manifests := rendered(t, "config/default")
	apply(t, c, manifests)
	namespaces := []string{clustertest.Namespace(t), clustertest.Namespace(t)}
	user := "system:serviceaccount:" + namespaces[0] + ":manager"
	grantLocally(t, c, managerRules(t, manifests), user, namespaces)
	identity, err := clustertest.Shared(t).As(user)
	if err != nil {
		t.Fatal(err)
	}

	requests, config := newRequests(identity.Config())
	fleettest.Run(t, config, manager.Options{Namespaces: namespaces})
	for _, namespace := range namespaces {
		cluster := podCluster(namespace, "local", "mine")
		apply(t, c, []*unstructured.Unstructured{cluster})
		awaitReady(t, c, []*unstructured.Unstructured{cluster})
	}
	for _, refused := range requests.refusals() {
		t.Errorf("the manager is not allowed to %s", refused)
	}
}

func managerRules(t *testing.T, manifests []*unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	index := slices.IndexFunc(manifests, func(object *unstructured.Unstructured) bool { return object.GetName() == "opdock-manager-role" })
	if index < 0 {
		t.Fatal("the manager has no role")
	}
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifests[index].Object, &role); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}

// grantLocally grants the rules in the namespaces; those about CRDs cannot be used there and are not granted.
func grantLocally(t *testing.T, c client.Client, rules []rbacv1.PolicyRule, user string, namespaces []string) {
	t.Helper()
	for _, namespace := range namespaces {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "manager"}
		for _, object := range []client.Object{
			&rbacv1.Role{ObjectMeta: meta, Rules: rules},
			&rbacv1.RoleBinding{
				ObjectMeta: meta,
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			},
		} {
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		for _, rule := range rules {
			awaitRights(t, c, user, []rights.Rule{{PolicyRule: rule, Namespace: namespace}})
		}
	}
}
