// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opdock/opdock/internal/rights"
)

// authorizer is an API server that grants rights from a certain question on, and never if that is 0.
func authorizer(from int, asked *[]string) client.Client {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			review := object.(*authorizationv1.SubjectAccessReview) //nolint:forcetypeassert // nothing else is created
			text := fmt.Sprint(review.Spec.Groups)
			if r := review.Spec.ResourceAttributes; r != nil {
				text += fmt.Sprintf(" %s %s.%s/%s %s in %q", r.Verb, r.Resource, r.Group, r.Subresource, r.Name, r.Namespace)
			}
			if r := review.Spec.NonResourceAttributes; r != nil {
				text += fmt.Sprintf(" %s %s", r.Verb, r.Path)
			}
			*asked = append(*asked, text)
			review.Status.Allowed = from > 0 && len(*asked) >= from
			return nil
		},
	}).Build()
}

// The API server grants new roles a moment after they were created.
func TestRightsAreAwaited(t *testing.T) {
	rules := []rights.Rule{
		{PolicyRule: rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale", "x"}, Verbs: []string{"update", "get"}, ResourceNames: []string{"web"}}, Namespace: "shop"},
		{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		{PolicyRule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}}}, // grants nothing
	}
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		if err := AwaitRights(t.Context(), authorizer(3, &asked), "system:serviceaccount:shop:captain", rules); err != nil {
			t.Fatal(err)
		}
		const groups = "[system:authenticated system:serviceaccounts system:serviceaccounts:shop]"
		scale := groups + ` update deployments.apps/scale web in "shop"`
		if want := []string{scale, scale, scale, groups + " get /metrics"}; !slices.Equal(asked, want) {
			t.Errorf("it asked %q, want %q", asked, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		if err := AwaitRights(t.Context(), authorizer(0, &asked), "jane", rules); err != nil || len(asked) < 2 {
			t.Errorf("rights that are never granted: it asked %d times, %v", len(asked), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := AwaitRights(ctx, authorizer(0, &asked), "jane", rules); err == nil {
			t.Error("a user who gives up waits")
		}
	})
}
