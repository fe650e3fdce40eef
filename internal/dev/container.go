// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/base64"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
)

// container is the operator's container as the manifests have it.
type container struct {
	workload  *unstructured.Unstructured
	fields    map[string]any
	manifests []*unstructured.Unstructured
	identity  *project.Identity // may be nil
}

// containerIn finds the operator's container; false if the manifests have none.
func containerIn(manifests []*unstructured.Unstructured, identity *project.Identity) (container, bool) {
	workload := project.Workload(manifests)
	if workload == nil {
		return container{}, false
	}
	containers := project.Containers(workload)
	if len(containers) == 0 {
		return container{}, false
	}
	chosen := containers[0]
	if i := slices.IndexFunc(containers, func(one map[string]any) bool { return one["name"] == "manager" }); i >= 0 {
		chosen = containers[i]
	}
	return container{workload: workload, fields: chosen, manifests: manifests, identity: identity}, true
}

func (c container) namespace() string {
	switch {
	case c.workload.GetNamespace() != "":
		return c.workload.GetNamespace()
	case c.identity != nil:
		return c.identity.Namespace
	default:
		return metav1.NamespaceDefault
	}
}

// environmentIn returns the environment of the operator's container in the manifests, as far as it is known
// without a kubelet: values, fields of the pod, and ConfigMaps and Secrets of the manifests.
func environmentIn(manifests []*unstructured.Unstructured, identity *project.Identity) []string {
	c, found := containerIn(manifests, identity)
	if !found {
		return nil
	}
	var env []string
	for _, from := range mapsIn(c.fields["envFrom"]) {
		prefix, _ := from["prefix"].(string)
		for _, kind := range []string{"ConfigMap", "Secret"} {
			name, _, _ := unstructured.NestedString(from, strings.ToLower(kind[:1])+kind[1:]+"Ref", "name")
			contents := c.contentsOf(kind, name)
			for _, key := range slices.Sorted(maps.Keys(contents)) {
				env = append(env, prefix+key+"="+contents[key])
			}
		}
	}
	for _, variable := range mapsIn(c.fields["env"]) {
		name, _ := variable["name"].(string)
		if value, known := c.value(variable, env); known {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (c container) value(variable map[string]any, env []string) (value string, known bool) {
	if value, ok := variable["value"].(string); ok {
		return expand(value, env), true
	}
	source, _ := variable["valueFrom"].(map[string]any)
	for _, kind := range []string{"ConfigMap", "Secret"} {
		reference, _, _ := unstructured.NestedStringMap(source, strings.ToLower(kind[:1])+kind[1:]+"KeyRef")
		if value, known := c.contentsOf(kind, reference["name"])[reference["key"]]; known {
			return value, true
		}
	}
	field, _, _ := unstructured.NestedString(source, "fieldRef", "fieldPath")
	switch field {
	case "metadata.namespace":
		return c.namespace(), true
	case "metadata.name":
		return c.podName(), true
	case "status.podIP", "status.hostIP":
		return loopback, true
	case "spec.serviceAccountName":
		if c.identity != nil {
			return c.identity.ServiceAccount, true
		}
	}
	return "", false
}

var reference = regexp.MustCompile(`\$\$|\$\(([A-Za-z_][\w.-]*)\)`)

// expand replaces $(NAME) with earlier variables, as the kubelet does. Unknown names stay unchanged.
func expand(value string, env []string) string {
	return reference.ReplaceAllStringFunc(value, func(match string) string {
		if match == "$$" {
			return "$"
		}
		name := match[2 : len(match)-1]
		if i := slices.IndexFunc(env, func(setting string) bool { return strings.HasPrefix(setting, name+"=") }); i >= 0 {
			return lastValue(env, name)
		}
		return match
	})
}

// contentsOf are the keys of a ConfigMap or Secret that is among the manifests.
func (c container) contentsOf(kind, name string) map[string]string {
	contents := map[string]string{}
	for _, object := range c.manifests {
		if object.GroupVersionKind().Group != "" || object.GetKind() != kind || object.GetName() != name {
			continue
		}
		if namespace := object.GetNamespace(); namespace != "" && namespace != c.namespace() {
			continue
		}
		for _, field := range []string{"data", "stringData", "binaryData"} {
			values, _, _ := unstructured.NestedStringMap(object.Object, field)
			for key, value := range values {
				if field == "binaryData" || field == "data" && kind == "Secret" {
					decoded, err := base64.StdEncoding.DecodeString(value)
					if err != nil {
						continue
					}
					value = string(decoded)
				}
				contents[key] = value
			}
		}
	}
	return contents
}

// mountedFiles are the files that ConfigMaps and Secrets among the manifests are in the container, by path.
func mountedFiles(manifests []*unstructured.Unstructured, identity *project.Identity) map[string]string {
	c, found := containerIn(manifests, identity)
	if !found {
		return nil
	}
	volumes := map[string]map[string]string{}
	list, _, _ := unstructured.NestedSlice(c.workload.Object, "spec", "template", "spec", "volumes")
	for _, volume := range mapsIn(list) {
		name, _ := volume["name"].(string)
		volumes[name] = c.volume(volume)
	}
	files := map[string]string{}
	for _, mount := range mapsIn(c.fields["volumeMounts"]) {
		name, _ := mount["name"].(string)
		at, _ := mount["mountPath"].(string)
		part, _ := mount["subPath"].(string)
		for file, content := range volumes[name] {
			switch part {
			case "":
				files[path.Join(at, file)] = content
			case file:
				files[path.Clean(at)] = content
			}
		}
	}
	return files
}

// volume are the files in a volume.
func (c container) volume(volume map[string]any) map[string]string {
	for kind, nameField := range map[string]string{"ConfigMap": "name", "Secret": "secretName"} {
		source, found, _ := unstructured.NestedMap(volume, strings.ToLower(kind[:1])+kind[1:])
		if !found {
			continue
		}
		name, _ := source[nameField].(string)
		contents := c.contentsOf(kind, name)
		items := mapsIn(source["items"])
		if len(items) == 0 {
			return contents
		}
		chosen := map[string]string{}
		for _, item := range items {
			key, _ := item["key"].(string)
			file, _ := item["path"].(string)
			if content, known := contents[key]; known && file != "" {
				chosen[file] = content
			}
		}
		return chosen
	}
	return nil
}

// podName is the name of the operator's pod. Here it is the one of its workload.
func (c container) podName() string { return c.workload.GetName() }

// hostnameOf is the name of the host in a pod, which is as long as the kernel allows.
func hostnameOf(pod string) string {
	const longest = 63
	return strings.TrimRight(pod[:min(len(pod), longest)], "-.")
}

// readsOwnName reports whether the container gets the name of its pod, which it may then look up.
func (c container) readsOwnName() bool {
	return slices.ContainsFunc(mapsIn(c.fields["env"]), func(variable map[string]any) bool {
		field, _, _ := unstructured.NestedString(variable, "valueFrom", "fieldRef", "fieldPath")
		return field == "metadata.name"
	})
}

// standIn returns a Pod with the operator's pod name, for operators that look themselves up: to own what
// they create, or to find their own image. No container runs in it; the operator runs on this machine.
func (c container) standIn() *unstructured.Unstructured {
	template, _, _ := unstructured.NestedMap(c.workload.Object, "spec", "template")
	spec, _, _ := unstructured.NestedMap(template, "spec")
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec}}
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	pod.SetLabels(labels)
	pod.SetNamespace(c.namespace())
	pod.SetName(c.podName())
	pod.SetAnnotations(map[string]string{standInAnnotation: "the operator runs outside of the cluster, under opdock dev"})
	return pod
}

// standInAnnotation marks the stand-in Pod.
const standInAnnotation = "opdock.dev/stand-in"

// mapsIn returns the elements of a list of maps.
func mapsIn(list any) (elements []map[string]any) {
	all, _ := list.([]any)
	for _, one := range all {
		if element, ok := one.(map[string]any); ok {
			elements = append(elements, element)
		}
	}
	return elements
}
