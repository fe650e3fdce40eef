// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/rights"
)

const (
	// inForcePatience is how long the API server may take to use new roles. Usually it takes milliseconds.
	inForcePatience = 10 * time.Second
	// inForceInterval is the time between two questions.
	inForceInterval = 20 * time.Millisecond
)

// AwaitRights waits until the API server grants a user the rights of roles that were just created. The API server reads roles and
// bindings from a cache, so a request that is sent at once may be refused although the roles allow it. Rights that are not granted
// after a while are not an error: the rehearsal shows what is refused.
func AwaitRights(ctx context.Context, admin client.Client, user string, rules []rights.Rule) error {
	over := time.NewTimer(inForcePatience)
	defer over.Stop()
	for _, rule := range rules {
		for _, review := range reviewsOf(rule, user) {
			for {
				asked := review.DeepCopy()
				if err := admin.Create(ctx, asked); err != nil {
					return fmt.Errorf("asking whether %s has its rights: %w", user, err)
				}
				if asked.Status.Allowed {
					break
				}
				select {
				case <-time.After(inForceInterval):
				case <-over.C:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
	}
	return nil
}

// reviewsOf returns what to ask the API server to know whether a rule is in force. The other verbs and resources of the rule come
// with the same role.
func reviewsOf(rule rights.Rule, user string) (reviews []*authorizationv1.SubjectAccessReview) {
	if len(rule.Verbs) == 0 {
		return nil
	}
	spec := authorizationv1.SubjectAccessReviewSpec{User: user, Groups: []string{"system:authenticated"}}
	if namespace, _, err := serviceaccount.SplitUsername(user); err == nil {
		spec.Groups = append(spec.Groups, serviceaccount.MakeGroupNames(namespace)...)
	}
	if len(rule.NonResourceURLs) > 0 {
		one := spec
		one.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: rule.NonResourceURLs[0], Verb: rule.Verbs[0]}
		reviews = append(reviews, &authorizationv1.SubjectAccessReview{Spec: one})
	}
	if len(rule.APIGroups) > 0 && len(rule.Resources) > 0 {
		resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
		one := spec
		one.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: rule.Namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
		}
		if len(rule.ResourceNames) > 0 {
			one.ResourceAttributes.Name = rule.ResourceNames[0]
		}
		reviews = append(reviews, &authorizationv1.SubjectAccessReview{Spec: one})
	}
	return reviews
}
