// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// placeholders are what scaffolded manifests have in place of an image.
var placeholders = []string{"controller", "REPLACE_IMAGE", "IMAGE_NAME"}

// IsPlaceholder reports whether an image is the placeholder of scaffolded manifests, which cannot be pulled.
func IsPlaceholder(image string) bool {
	name, _, _ := strings.Cut(image, ":")
	return image == "" || slices.Contains(placeholders, name) || strings.Contains(image, "{{")
}

// Image returns the image of the operator in the manifests; false if it is unclear which container is the operator.
func Image(manifests []*unstructured.Unstructured) (image string, ok bool) {
	workload := Workload(manifests)
	if workload == nil {
		return "", false
	}
	containers := Containers(workload)
	index, ok := operator(containers)
	if !ok {
		return "", false
	}
	image, _ = containers[index]["image"].(string)
	return image, true
}

// WithImage returns the manifests with another image of the operator.
func WithImage(manifests []*unstructured.Unstructured, image string) ([]*unstructured.Unstructured, error) {
	workload := Workload(manifests)
	if workload == nil {
		return nil, fmt.Errorf("cannot set the image: no workload in the manifests is clearly the operator: %s",
			strings.Join(workloadNames(manifests), ", "))
	}
	containers := Containers(workload)
	index, ok := operator(containers)
	if !ok {
		return nil, fmt.Errorf("cannot set the image: %s has %d containers, and none of them is named manager", titleOf(workload), len(containers))
	}
	changed := workload.DeepCopy()
	list, _, _ := unstructured.NestedSlice(changed.Object, "spec", "template", "spec", "containers")
	list[index].(map[string]any)["image"] = image
	if err := unstructured.SetNestedSlice(changed.Object, list, "spec", "template", "spec", "containers"); err != nil {
		return nil, fmt.Errorf("setting the image of %s: %w", titleOf(workload), err)
	}
	result := slices.Clone(manifests)
	result[slices.Index(result, workload)] = changed
	return result, nil
}

// defaultEntrypoint is where kubebuilder's manifests expect the operator.
const defaultEntrypoint = "/manager"

// Entrypoint returns the path of the operator in its image, from the command in the manifests.
func Entrypoint(manifests []*unstructured.Unstructured) string {
	workload := Workload(manifests)
	if workload == nil {
		return defaultEntrypoint
	}
	containers := Containers(workload)
	index, ok := operator(containers)
	if !ok {
		return defaultEntrypoint
	}
	command, _, _ := unstructured.NestedStringSlice(containers[index], "command")
	if len(command) == 0 {
		return defaultEntrypoint
	}
	switch program := command[0]; {
	case slices.Contains([]string{"sh", "bash", "ash"}, path.Base(program)):
		return defaultEntrypoint // a shell is not what is built
	case strings.Contains(program, "/"):
		return path.Join("/", program)
	default:
		return "/usr/local/bin/" + program // one of the folders that are searched for it
	}
}

func workloadNames(manifests []*unstructured.Unstructured) []string {
	var names []string
	for _, workload := range Workloads(manifests) {
		names = append(names, titleOf(workload))
	}
	if len(names) == 0 {
		return []string{"no workloads found"}
	}
	return names
}

// operator finds the operator among the containers of its pods: the only one, or the manager, or the one whose image is
// still to be set.
func operator(containers []map[string]any) (int, bool) {
	if len(containers) == 1 {
		return 0, true
	}
	if index := slices.IndexFunc(containers, func(one map[string]any) bool { return one["name"] == "manager" }); index >= 0 {
		return index, true
	}
	index := slices.IndexFunc(containers, func(one map[string]any) bool {
		image, _ := one["image"].(string)
		return IsPlaceholder(image)
	})
	return index, index >= 0
}

// Workloads returns the Deployments, StatefulSets and DaemonSets among the objects.
func Workloads(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		return !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, object.GetKind())
	})
}

// titleOf is what messages call an object.
func titleOf(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}
