// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/opdock/opdock/internal/prove/world"
)

// Clusters with the admission plugin OwnerReferencesPermissionEnforcement, such as those of OpenShift, let an operator set
// blockOwnerDeletion only if it may update the finalizers of the owner. No request shows that elsewhere.

// ownersOf returns one object of each kind of which the operator's objects block the deletion at the end of the last stage, in the order
// of the kinds. The operator may also write objects whose owner references are not its own.
func ownersOf(stages []*stage) (owners []world.Key) {
	owned := map[string]bool{}
	for _, s := range stages {
		for _, w := range s.writes {
			refers := slices.ContainsFunc(w.fields, func(field string) bool { return strings.HasPrefix(field, "metadata.ownerReferences") })
			if w.Verb == "create" || w.Verb == "apply" || refers {
				owned[nameOf(w.object, w.Namespace, w.Name)] = true
			}
		}
	}
	state := stages[len(stages)-1].state
	for _, key := range sortedKeys(state) {
		if !owned[key.String()] || ofController(state[key]) {
			continue
		}
		for _, reference := range state[key].GetOwnerReferences() {
			if reference.BlockOwnerDeletion == nil || !*reference.BlockOwnerDeletion {
				continue
			}
			for owner, object := range state {
				known := slices.ContainsFunc(owners, func(one world.Key) bool { return one.Group == owner.Group && one.Resource == owner.Resource })
				if object.GetUID() == reference.UID && !known {
					owners = append(owners, owner)
				}
			}
		}
	}
	return owners
}

// ownerRights finds owners whose finalizers the operator's role does not allow it to update. It asks once for each kind, at the end of the
// step that has shown it: a later step may delete the role.
func (r *run) ownerRights(ctx context.Context, stages []*stage, asked map[schema.GroupResource]bool) (wrong []*Observation, err error) {
	identity := r.campaign.operator.Identity()
	owners := slices.DeleteFunc(ownersOf(stages), func(one world.Key) bool { return asked[schema.GroupResource{Group: one.Group, Resource: one.Resource}] })
	if identity == nil || len(owners) == 0 {
		return nil, nil
	}
	as, err := r.cluster.As(identity.User())
	if err != nil {
		return nil, fmt.Errorf("giving the operator its identity: %w", err)
	}
	client, err := kubernetes.NewForConfig(unlimited(as.Config()))
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	for _, owner := range owners {
		asked[schema.GroupResource{Group: owner.Group, Resource: owner.Resource}] = true
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "update", Group: owner.Group, Resource: owner.Resource, Subresource: "finalizers", Namespace: owner.Namespace, Name: owner.Name,
		}}}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("asking what the operator may do: %w", err)
		}
		if answer.Status.Allowed {
			continue
		}
		resource := schema.GroupResource{Group: owner.Group, Resource: owner.Resource + "/finalizers"}
		wrong = append(wrong, &Observation{
			Step: len(stages) - 1, Verdict: "refused-rights", Severity: low, Object: owner.Resource,
			Title: "The operator's role does not allow what clusters with OwnerReferencesPermissionEnforcement require: update " + resource.Resource,
			Want:  "the role allows it, because the operator sets blockOwnerDeletion for owners of this kind; OpenShift requires that", Got: "no rule for " + resource.String(),
		})
	}
	return wrong, nil
}
