// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
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
	// Field is the path of the field, with [] for any item of a list.
	Field string
	// Subresource, if it is not empty, is the only way to set the field.
	Subresource string
	// Holder names who uses the right, for the documentation.
	Holder string
}

// Rights lists all of them. A right applies only if the custom resource does not set the field.
var Rights = []Right{
	{Child: "Deployment", Field: "spec.replicas", Holder: "the HorizontalPodAutoscaler, while `autoscaling` is set"},
	{Child: "Deployment", Field: "spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt", Holder: "`kubectl rollout restart`"},
	{Child: "Service", Field: "spec.loadBalancerIP", Holder: "the controller of the load balancer"},
	{Child: "AppService", Field: "spec.size", Subresource: "scale", Holder: "users and autoscalers, if the component of the KAPP omits it"},
	{Child: "PodCluster", Field: "spec.podReplicas", Subresource: "scale", Holder: "users and autoscalers, if the component of the KAPP omits it"},
	{Child: "Robot", Field: "spec.replicas", Subresource: "scale", Holder: "users and autoscalers, if the component of the KAPP omits it"},
	{Child: "Pod", Field: "spec.containers[].resources", Subresource: "resize", Holder: "in-place resizing, such as a vertical autoscaler"},
	{Child: "Pod", Field: "spec.ephemeralContainers", Subresource: "ephemeralcontainers", Holder: "`kubectl debug`"},
	{Child: "Pod", Field: "spec.nodeName", Holder: "the scheduler"},
}

// hasRight reports whether a writer may set a field. The parents of a field may be set along with it, and so may
// everything below it.
func hasRight(kind string, path fieldpath.Path, subresource string) bool {
	return hasRightTo(kind, fieldName(path), subresource)
}

func hasRightTo(kind, name, subresource string) bool {
	for _, right := range Rights {
		if right.Child != kind || right.Subresource != "" && right.Subresource != subresource {
			continue
		}
		if isWithin(right.Field, name) || isWithin(name, right.Field) {
			return true
		}
	}
	return false
}

// isWithin reports whether a field is another one or below it.
func isWithin(name, parent string) bool {
	rest, found := strings.CutPrefix(name, parent)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
