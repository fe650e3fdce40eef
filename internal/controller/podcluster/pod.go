// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/workload"
)

// labelKind is the value of the label with the kind of an object's owner.
const labelKind = "podcluster"

// selector are the labels of the PodCluster's pods and revisions.
func selector(cluster *kubegroupv1.PodCluster) map[string]string {
	return workload.SelectorLabels(labelKind, cluster.Name)
}

// identity are the labels by which the PodCluster and the cache of the manager find a pod.
func identity(cluster *kubegroupv1.PodCluster) map[string]string {
	labels := selector(cluster)
	labels[flow.LabelManagedBy] = flow.ManagedBy
	return labels
}

func controllerRef(cluster *kubegroupv1.PodCluster) metav1.OwnerReference {
	return *metav1.NewControllerRef(cluster, kubegroupv1.GroupVersion.WithKind("PodCluster"))
}

// belonging is the metadata that every pod of a PodCluster has.
type belonging struct {
	labels map[string]string
	owner  metav1.OwnerReference
}

func belongingTo(cluster *kubegroupv1.PodCluster) belonging {
	return belonging{identity(cluster), controllerRef(cluster)}
}

// with adds a label that only this pod has. Nearly always it has it already, and nothing is copied.
func (b belonging) with(pod *corev1.Pod, label, value string) belonging {
	if pod.Labels[label] == value {
		return b
	}
	labels := maps.Clone(b.labels)
	labels[label] = value
	return belonging{labels, b.owner}
}

// hasReference reports whether an object has this very reference to an owner. The garbage collector goes by all of it.
func hasReference(object metav1.Object, owner metav1.OwnerReference) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(one metav1.OwnerReference) bool {
		return one.UID == owner.UID && apiequality.Semantic.DeepEqual(one, owner)
	})
}

// referencesTo returns the references that an object has to an owner.
func referencesTo(owner types.UID, object metav1.Object) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(one metav1.OwnerReference) bool { return one.UID != owner })
}

// withReference returns references with the one to this owner, once.
func withReference(references []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	references = slices.Clone(references)
	if index := slices.IndexFunc(references, func(one metav1.OwnerReference) bool { return one.UID == owner.UID }); index >= 0 {
		references[index] = owner
		return references
	}
	return append(references, owner)
}

// podOf returns the pod with a number, from a revision.
func podOf(cluster *kubegroupv1.PodCluster, r *revision, ordinal int) (*corev1.Pod, error) {
	labels := selector(cluster)
	labels[labelRevision] = r.hash
	labels[labelOrdinal] = strconv.Itoa(ordinal)
	template, err := workload.Template(r.template, defaultImage, labels)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encoding the pod: %w", err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(data, pod); err != nil {
		return nil, fmt.Errorf("decoding the pod: %w", err)
	}
	pod.Name = podName(cluster.Name, ordinal)
	pod.Namespace = cluster.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{controllerRef(cluster)}
	if service := ptr.Deref(cluster.Spec.ServiceName, ""); service != "" {
		pod.Spec.Hostname = pod.Name
		pod.Spec.Subdomain = service
	}
	return pod, nil
}

// renewed returns the pod with the images of a revision, and an annotation to detect when its kubelet has acted. A pod
// without one of these containers would follow the revision by its label alone, which is an error.
func renewed(pod *corev1.Pod, images map[string]string, to *revision, now time.Time) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	missing := maps.Clone(images)
	last := readRenewal(pod)
	note := renewal{Begun: now.UTC().Truncate(time.Second), Before: map[string]runningContainer{}}
	for i := range pod.Spec.InitContainers {
		// They do not run again, so there is nothing to wait for.
		if image, changed := images[pod.Spec.InitContainers[i].Name]; changed {
			pod.Spec.InitContainers[i].Image = image
			delete(missing, pod.Spec.InitContainers[i].Name)
		}
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		running := runningContainer{ID: containerID(pod, container.Name), Image: container.Image}
		if before, changed := last.Before[container.Name]; changed && before.ID == running.ID {
			// The kubelet has not acted upon the last change yet.
			running = before
		}
		if image, changed := images[container.Name]; changed {
			container.Image = image
			delete(missing, container.Name)
		}
		// A kubelet may see only the end of a change that is taken back at once, and then has nothing to act upon.
		if container.Image != running.Image && familiar(reportedImage(pod, container.Name)) != familiar(container.Image) {
			note.Before[container.Name] = running
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("pod %s has no container %s, whose image is to be changed", pod.Name, strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	encoded, err := json.Marshal(note)
	if err != nil {
		return nil, fmt.Errorf("encoding a note: %w", err)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotationRenewal] = string(encoded)
	pod.Labels[labelRevision] = to.hash
	return pod, nil
}
