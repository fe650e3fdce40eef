// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

// SelectorLabels returns the labels that select the pods of an object.
func SelectorLabels(kind, instance string) map[string]string {
	return map[string]string{flow.LabelKind: kind, flow.LabelInstance: instance}
}

// Template makes Kubernetes' pod template of ours. Containers without an image get the given one, and the labels are
// added to those of the template along with the one that the caches select by.
func Template(template *sharedv1.PodTemplate, image string, labels map[string]string) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	spec := template.Spec.DeepCopy()
	for _, containers := range [][]sharedv1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			if containers[i].Image == "" {
				containers[i].Image = image
			}
		}
	}
	// Our types are selections of Kubernetes' own, with the same names in JSON.
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the pod template: %w", err)
	}
	converted := corev1ac.PodSpec()
	if err := json.Unmarshal(data, converted); err != nil {
		return nil, fmt.Errorf("decoding the pod template: %w", err)
	}
	all := map[string]string{}
	result := corev1ac.PodTemplateSpec().WithSpec(converted)
	if template.Metadata != nil {
		maps.Copy(all, template.Metadata.Labels)
		if len(template.Metadata.Annotations) > 0 {
			result.WithAnnotations(template.Metadata.Annotations)
		}
	}
	maps.Copy(all, labels)
	all[flow.LabelManagedBy] = flow.ManagedBy
	return result.WithLabels(all), nil
}

// FollowsSpec sets fields that the API server derives from others. Server-side apply changes only fields that their manager
// applies, so a derived one would keep its value when the field that it was derived from changes or goes.
func FollowsSpec(template *corev1ac.PodTemplateSpecApplyConfiguration) *corev1ac.PodTemplateSpecApplyConfiguration {
	spec := template.Spec
	for _, containers := range [][]corev1ac.ContainerApplyConfiguration{spec.Containers, spec.InitContainers} {
		for i := range containers {
			if containers[i].ImagePullPolicy == nil {
				containers[i].WithImagePullPolicy(PullPolicy(ptr.Deref(containers[i].Image, "")))
			}
		}
	}
	// The API server copies it to the field with the older name, and back from there.
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	return template
}

// PullPolicy returns the policy that the API server gives to an image.
func PullPolicy(image string) corev1.PullPolicy {
	name, _, hasDigest := strings.Cut(image, "@")
	_, tag, hasTag := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if tag == "latest" || !hasTag && !hasDigest {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
