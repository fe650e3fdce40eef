// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"
	"strings"
)

// podTemplate begins the fields of the pods that a Deployment makes.
const podTemplate = "spec.template.spec."

// atomicFields are the lists, maps and structs of children that have one owner as a whole. The schemas of the API say the
// same, which a test checks, but they take long to read. The list has the fields that most children have; the schemas are
// read for others.
var atomicFields = map[string][]string{
	"Deployment":              {"spec.selector"},
	"Service":                 {"spec.selector"},
	"Ingress":                 {"spec.rules", "spec.tls"},
	"HorizontalPodAutoscaler": {"spec.metrics"},
	"NetworkPolicy":           {"spec.ingress", "spec.egress", "spec.podSelector", "spec.policyTypes"},
	"PodDisruptionBudget":     {"spec.selector"},
	"Collector":               {"spec.selector"},
}

// atomicInPods are those of a pod template.
var atomicInPods = []string{
	"affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution",
	"containers[].args", "containers[].command", "containers[].envFrom",
	"containers[].env[].valueFrom.configMapKeyRef", "containers[].env[].valueFrom.fieldRef",
	"containers[].env[].valueFrom.resourceFieldRef", "containers[].env[].valueFrom.secretKeyRef",
	"containers[].livenessProbe.exec.command", "containers[].readinessProbe.exec.command", "containers[].startupProbe.exec.command",
	"containers[].securityContext.capabilities.add", "containers[].securityContext.capabilities.drop",
	"initContainers[].args", "initContainers[].command",
	"nodeSelector", "tolerations", "topologySpreadConstraints[].labelSelector", "volumes[].projected.sources",
}

// isAtomic reports whether a field of a child is known to have one owner as a whole.
func isAtomic(kind, field string) bool {
	if field == "metadata.ownerReferences[]" || slices.Contains(atomicFields[kind], field) {
		return true
	}
	inPod, isInPod := strings.CutPrefix(field, podTemplate)
	return isInPod && kind == "Deployment" && slices.Contains(atomicInPods, inPod)
}
