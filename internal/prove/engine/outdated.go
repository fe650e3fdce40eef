// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opdock/opdock/internal/prove/world"
)

// The variables of a container and the files that are mounted with a subPath are read once, when the container starts. An operator
// that puts a new configuration into a ConfigMap or a Secret and lets the pods run has changed nothing for the application. No object
// shows that: they are the same as after a fresh start.

// startup is what a container reads when it starts.
type startup struct {
	object string // the ConfigMap or the Secret
	key    string // empty for all
	what   string // what it becomes in the container
}

// outdated returns an observation for each ConfigMap and Secret that the operator has changed although pods keep what was in it
// before.
func (c *campaign) outdated(step int, before world.State, now *made) (wrong []*Observation) {
	changed := c.changedData(before, now)
	if len(changed) == 0 {
		return nil
	}
	found := map[string]*Observation{}
	for _, key := range sortedKeys(now.state) {
		was, same := before[key]
		if key.Kind != "Pod" || key.Group != "" || !same || was.GetUID() != now.state[key].GetUID() {
			continue
		}
		var pod corev1.Pod
		if runtime.DefaultUnstructuredConverter.FromUnstructured(now.state[key].Object, &pod) != nil || !runs(&pod) || isReplacedByHand(now.state, &pod) {
			continue
		}
		for _, one := range readAtStart(&pod) {
			for _, path := range changed[one.object] {
				if one.key != "" && path != "data."+one.key && path != "binaryData."+one.key {
					continue
				}
				if found[one.object] == nil {
					kind, _, _ := strings.Cut(one.object, " ")
					found[one.object] = &Observation{
						Step: step, Verdict: "update", Severity: medium, Object: one.object,
						Title: "Pods keep what they read from " + lowerKind(kind) + " before it was changed",
						Want:  fmt.Sprintf("new pods, because containers read %s from %s of %s only when they start", one.what, path, one.object),
						Got:   "the same pods as before the change",
					}
				}
				if o := found[one.object]; !slices.Contains(o.Fields, path) {
					o.Fields = append(o.Fields, path)
				}
			}
		}
	}
	for _, object := range slices.Sorted(maps.Keys(found)) {
		wrong = append(wrong, found[object])
	}
	return wrong
}

// changedData are the keys that have changed in ConfigMaps and Secrets of the operator.
func (c *campaign) changedData(before world.State, now *made) map[string][]string {
	written := c.learnedWrites()
	maps.Copy(written, now.written)
	changed := map[string][]string{}
	for _, d := range c.mask.Differences(c.shapeOf(before), c.shapeOf(now.state)) {
		kind, _, _ := strings.Cut(d.Object, " ")
		isData := strings.HasPrefix(d.Path, "data.") || strings.HasPrefix(d.Path, "binaryData.")
		if isData && (kind == "ConfigMap" || kind == "Secret") && written[d.Object] {
			changed[d.Object] = append(changed[d.Object], d.Path)
		}
	}
	return changed
}

// runs reports whether a pod runs until it is replaced. The pod of a Job runs to completion with the configuration it started with.
func runs(pod *corev1.Pod) bool {
	ofJob := slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "Job" })
	return !ofJob && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning
}

// isReplacedByHand reports whether a user must delete a pod to get a new one.
func isReplacedByHand(state world.State, pod *corev1.Pod) bool {
	for _, owner := range pod.OwnerReferences {
		for key, object := range state {
			if key.Kind != owner.Kind || key.Namespace != pod.Namespace || key.Name != owner.Name {
				continue
			}
			if strategy, _, _ := unstructured.NestedString(object.Object, "spec", "updateStrategy", "type"); strategy == "OnDelete" {
				return true
			}
		}
	}
	return false
}

// readAtStart returns what the containers of a pod read from ConfigMaps and Secrets when they start. Init containers are over, but for
// sidecars.
func readAtStart(pod *corev1.Pod) (all []startup) {
	containers := slices.Clone(pod.Spec.Containers)
	for i := range pod.Spec.InitContainers {
		if restarts := pod.Spec.InitContainers[i].RestartPolicy; restarts != nil && *restarts == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, pod.Spec.InitContainers[i])
		}
	}
	named := func(kind, name string) string { return nameOf(kind, pod.Namespace, name) }
	for i := range containers {
		for _, from := range containers[i].EnvFrom {
			if from.ConfigMapRef != nil {
				all = append(all, startup{named("ConfigMap", from.ConfigMapRef.Name), "", "variables"})
			}
			if from.SecretRef != nil {
				all = append(all, startup{named("Secret", from.SecretRef.Name), "", "variables"})
			}
		}
		for _, variable := range containers[i].Env {
			if variable.ValueFrom == nil {
				continue
			}
			what := "the variable " + variable.Name
			if ref := variable.ValueFrom.ConfigMapKeyRef; ref != nil {
				all = append(all, startup{named("ConfigMap", ref.Name), ref.Key, what})
			}
			if ref := variable.ValueFrom.SecretKeyRef; ref != nil {
				all = append(all, startup{named("Secret", ref.Name), ref.Key, what})
			}
		}
		for _, mount := range containers[i].VolumeMounts {
			if mount.SubPath == "" {
				continue // such files follow
			}
			at := slices.IndexFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == mount.Name })
			if at < 0 {
				continue
			}
			for _, file := range filesOf(&pod.Spec.Volumes[at]) {
				key := file.key(mount.SubPath)
				if key != "" {
					all = append(all, startup{named(file.kind, file.name), key, "the file " + mount.MountPath})
				}
			}
		}
	}
	return all
}

// files are those of a ConfigMap or a Secret in a volume.
type files struct {
	kind, name string
	items      []corev1.KeyToPath
}

// key returns the key of a file; empty if there is none.
func (f *files) key(path string) string {
	if len(f.items) == 0 {
		return path
	}
	for _, item := range f.items {
		if item.Path == path {
			return item.Key
		}
	}
	return ""
}

func filesOf(volume *corev1.Volume) (all []files) {
	if source := volume.ConfigMap; source != nil {
		all = append(all, files{"ConfigMap", source.Name, source.Items})
	}
	if source := volume.Secret; source != nil {
		all = append(all, files{"Secret", source.SecretName, source.Items})
	}
	if volume.Projected != nil {
		for _, source := range volume.Projected.Sources {
			if source.ConfigMap != nil {
				all = append(all, files{"ConfigMap", source.ConfigMap.Name, source.ConfigMap.Items})
			}
			if source.Secret != nil {
				all = append(all, files{"Secret", source.Secret.Name, source.Secret.Items})
			}
		}
	}
	return all
}
