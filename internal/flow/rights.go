// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Right is a field of a child that another writer may set. Any other field that is changed, added or removed is corrected.
//
// Fields that the API server or admission sets need no entry: no manager owns them. Neither do labels, annotations,
// finalizers and owner references of other writers, which are never changed.
type Right struct {
	// Child is the kind of the child.
	Child string
	// Path consists of the names of fields, with anyItem for any item of a list.
	Path []string
	// Subresource, if it is not empty, is the only way to set the field.
	Subresource string
	// Holder names who uses the right, for the documentation.
	Holder string
}

// anyItem stands for any item of a list in the path of a field.
const anyItem = "[]"

// Rights lists all of them. A right applies only if the custom resource does not set the field, unless the holder says
// otherwise.
var Rights = []Right{
	{Child: "Deployment", Path: []string{"spec", "replicas"}, Holder: "the HorizontalPodAutoscaler, while `autoscaling` is set"},
	{Child: "Deployment", Path: []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}, Holder: "`kubectl rollout restart`"},
	// An AppService has no field for them.
	{Child: "Service", Path: []string{"spec", "ipFamilies"}, Holder: "administrators who make the Service dual-stack"},
	{Child: "Service", Path: []string{"spec", "ipFamilyPolicy"}, Holder: "administrators who make the Service dual-stack"},
	{Child: "Service", Path: []string{"spec", "loadBalancerIP"}, Holder: "the controller of the load balancer"},
	// The server keeps the existing port if an apply leaves it open, so it could not be restored either.
	{Child: "Service", Path: []string{"spec", "ports", anyItem, "nodePort"}, Holder: "administrators, for a port whose `nodePort` the spec leaves open"},
	// The cluster gives its default class to new Ingresses only, so to revert another one would leave none.
	{Child: "Ingress", Path: []string{"spec", "ingressClassName"}, Holder: "administrators, if the spec leaves `className` open"},
	{Child: "AppService", Path: []string{"spec", "size"}, Subresource: "scale", Holder: "users and autoscalers, if the component of the KAPP omits it"},
	{Child: "PodCluster", Path: []string{"spec", "podReplicas"}, Subresource: "scale", Holder: "users and autoscalers, if the component of the KAPP omits it"},
	{Child: "Robot", Path: []string{"spec", "replicas"}, Subresource: "scale", Holder: "users and autoscalers, if the component of the KAPP omits it"},
	// Even if the template sets them: an autoscaler starts from there.
	{Child: "Pod", Path: []string{"spec", "containers", anyItem, "resources"}, Subresource: "resize", Holder: "in-place resizing, such as a vertical autoscaler, even if the template sets them"},
	{Child: "Pod", Path: []string{"spec", "initContainers", anyItem, "resources"}, Subresource: "resize", Holder: "in-place resizing of sidecars, even if the template sets them"},
	{Child: "Pod", Path: []string{"spec", "ephemeralContainers"}, Subresource: "ephemeralcontainers", Holder: "`kubectl debug`"},
	{Child: "Pod", Path: []string{"spec", "nodeName"}, Holder: "the scheduler"},
}

// hasRight reports whether a writer may set a field. The parents of a field may be set along with it, and so may
// everything below it. A right to a field of list items is none to add items: the items must be among the expected fields,
// unless the right is to a subresource, by which no item can be added.
func hasRight(kind string, path fieldpath.Path, subresource string, expected ...*fieldpath.Set) bool {
	return slices.ContainsFunc(Rights, func(right Right) bool {
		return right.Child == kind && right.covers(path) && (right.Subresource == "" && hasItems(path, expected) ||
			right.Subresource != "" && right.Subresource == subresource)
	})
}

// hasItems reports whether the items of lists in a path are in one of the sets.
func hasItems(path fieldpath.Path, sets []*fieldpath.Set) bool {
	for i := range path {
		if path[i].FieldName == nil && !slices.ContainsFunc(sets, func(set *fieldpath.Set) bool { return set != nil && hasBelow(set, path[:i+1]) }) {
			return false
		}
	}
	return true
}

// covers compares element by element: the keys of annotations contain dots themselves.
func (r Right) covers(path fieldpath.Path) bool {
	for i := range min(len(path), len(r.Path)) {
		if fieldName(path[i:i+1]) != r.Path[i] {
			return false
		}
	}
	return true
}

// Field returns the path as it is written in the documentation.
func (r Right) Field() string {
	return strings.ReplaceAll(strings.Join(r.Path, "."), "."+anyItem, anyItem)
}
