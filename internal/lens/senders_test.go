// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/testenv"
)

// TestWhoLacksARight sends requests as a user who has no rights: at first the sender may not, and then the user may not.
func TestWhoLacksARight(t *testing.T) {
	w := newWorld(t, "application/json", nil)
	name := w.namespace // of objects that are in no namespace
	identity := must[*rest.Config](t)(asConfig(clustertest.Shared(t).As("system:serviceaccount:" + w.namespace + ":operator")))
	if err := w.lens.Forward(identity, "system:serviceaccount:"+w.namespace+":operator"); err != nil {
		t.Fatal(err)
	}
	config := w.lens.Config()
	config.Impersonate.UserName = "alice"
	alice := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(config))
	count := func() (impersonate, list lens.Use) {
		if err := w.lens.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, u := range w.lens.Stream().Totals().Uses {
			switch {
			case u.Verb == "impersonate" && u.Resource == "users" && u.Names["alice"] == u.Count:
				impersonate = *u
			case u.Verb == "list" && u.As:
				list = *u
			case u.Path == "":
				t.Errorf("counted is %+v", u)
			}
		}
		return impersonate, list
	}
	_, err := alice.CoreV1().Secrets(w.namespace).List(t.Context(), metav1.ListOptions{})
	if impersonate, list := count(); impersonate.Count != 1 || impersonate.Forbidden != 1 || list.Count != 1 {
		t.Errorf("before, with %v, counted are %+v and %+v", err, impersonate, list)
	}

	must[*rbacv1.ClusterRole](t)(w.direct.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"alice"}, Verbs: []string{"impersonate"}}},
	}, metav1.CreateOptions{}))
	t.Cleanup(func() {
		_ = w.direct.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{})
		_ = w.direct.RbacV1().ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	must[*rbacv1.ClusterRoleBinding](t)(w.direct.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name, APIGroup: rbacv1.GroupName},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "operator", Namespace: w.namespace}},
	}, metav1.CreateOptions{}))
	testenv.Eventually(t, "the sender may impersonate", func() error {
		_, err := alice.CoreV1().Secrets(w.namespace).List(t.Context(), metav1.ListOptions{})
		if err == nil || !strings.Contains(err.Error(), `User "alice" cannot list`) {
			return errors.Join(errors.New("not yet"), err)
		}
		return nil
	})
	if impersonate, list := count(); impersonate.Count != list.Count || impersonate.Count != impersonate.Forbidden+1 || list.Forbidden != list.Count {
		t.Errorf("after, counted are %+v and %+v", impersonate, list)
	}
}

// TestBindingsOfRoles binds a role that the client has read, and one that it has not.
func TestBindingsOfRoles(t *testing.T) {
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		w := newWorld(t, contentType, nil)
		for _, name := range []string{"seen", "unseen"} {
			must[*rbacv1.Role](t)(w.direct.RbacV1().Roles(w.namespace).Create(t.Context(), &rbacv1.Role{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
			}, metav1.CreateOptions{}))
		}
		must[*rbacv1.Role](t)(w.client.RbacV1().Roles(w.namespace).Get(t.Context(), "seen", metav1.GetOptions{}))
		for _, name := range []string{"seen", "unseen"} {
			must[*rbacv1.RoleBinding](t)(w.client.RbacV1().RoleBindings(w.namespace).Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name, APIGroup: rbacv1.GroupName},
			}, metav1.CreateOptions{}))
		}
		var got []string
		for _, request := range w.requests("rolebindings") {
			for _, one := range request.Implies {
				got = append(got, fmt.Sprintf("%s %s/%s %t", one.Verb, one.Resource.Resource, one.Resource.Name, one.Because == lens.BindsUnknown))
			}
		}
		if want := []string{"bind roles/seen false", "get pods/ false", "bind roles/unseen true"}; !slices.Equal(got, want) {
			t.Errorf("%s: implied is %q, want %q", contentType, got, want)
		}
	}
}
