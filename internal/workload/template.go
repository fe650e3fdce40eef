// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

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
