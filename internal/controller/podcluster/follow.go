// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
)

// followed returns the revision that a pod was created from or updated to; nil if it is unknown. The label of the pod says
// which one, as long as no other writer has set it. Otherwise the pod itself has to tell: a label is changed more easily.
func followed(cluster *kubegroupv1.PodCluster, revisions map[string]*revision, m *member) *revision {
	labelled := revisions[m.hash]
	if labelled != nil && ownsText(m.pod, revisionText) {
		return labelled
	}
	if isCreatedByUs(m.pod) && hasForeignImage(m.pod) {
		// The writer that changed the label may have changed the image to match.
		return nil
	}
	if labelled != nil {
		if wanted, err := podOf(cluster, labelled, m.ordinal); err == nil && fits(wanted, m.pod) {
			return labelled
		}
	}
	if found := fitting(cluster, revisions, m); found != nil {
		return found
	}
	if !isCreatedByUs(m.pod) {
		// The label never was ours. A pod that was restored from a backup may be as admission had changed it.
		return labelled
	}
	return nil
}

// revisionText is the label of the revision in an entry of the managed fields.
const revisionText = `"f:` + labelRevision + `":{}`

// isCreatedByUs reports whether the server has recorded that we have created a pod: only then we own names below its spec,
// and not just what can be changed later.
func isCreatedByUs(pod *corev1.Pod) bool {
	for _, fields := range ownFields(pod) {
		if _, spec, found := bytes.Cut(fields.GetRawBytes(), []byte(specText)); found && bytes.Contains(spec, []byte(`"f:name":{}`)) {
			return true
		}
	}
	return false
}

// specText begins the spec in an entry of the managed fields. A label of that name has nothing below it.
const specText = `"f:spec":{"f:`

// isCleared reports whether the managed fields of a pod were cleared: whoever creates a pod owns fields of its spec.
func isCleared(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(specText))
	})
}

// clearedText describes the drift of a pod about which the managed fields say nothing.
const clearedText = "metadata.managedFields was cleared and the pod differs from its template"

// isUnlike reports whether a pod with cleared managed fields differs from its revision. Nothing else tells.
func isUnlike(cluster *kubegroupv1.PodCluster, r *revision, m *member) bool {
	if !isCleared(m.pod) {
		return false
	}
	wanted, err := podOf(cluster, r, m.ordinal)
	return err == nil && !fits(wanted, m.pod)
}

// ownsText reports whether our entries of the managed fields contain a text. Each pass asks it of all pods, and to parse the
// entries takes a hundred times as long.
func ownsText(object metav1.Object, text string) bool {
	for _, fields := range ownFields(object) {
		if bytes.Contains(fields.GetRawBytes(), []byte(text)) {
			return true
		}
	}
	return false
}

// hasForeignImage reports whether another manager has changed the image of a container that we have created.
func hasForeignImage(pod *corev1.Pod) bool {
	var ours fieldpath.Set
	for _, fields := range ownFields(pod) {
		var some fieldpath.Set
		if err := some.FromJSON(fields.GetRawReader()); err == nil {
			ours = *ours.Union(&some)
		}
	}
	isForeign := func(list string, container corev1.Container) bool {
		name := []any{"spec", list, fieldpath.KeyByFields("name", container.Name)}
		isOurs := func(field string) bool { return ours.Has(fieldpath.MakePathOrDie(append(slices.Clip(name), field)...)) }
		return isOurs("name") && !isOurs("image") && setter(pod, append(slices.Clip(name), "image")...) != ""
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(one corev1.Container) bool { return isForeign("containers", one) }) ||
		slices.ContainsFunc(pod.Spec.InitContainers, func(one corev1.Container) bool { return isForeign("initContainers", one) })
}

// setter returns the manager, other than us, that was the last to set a field of a pod; "" if there is none.
func setter(pod *corev1.Pod, path ...any) string {
	for _, entry := range pod.ManagedFields {
		if entry.Manager == string(fieldOwner) || entry.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err == nil && fields.Has(fieldpath.MakePathOrDie(path...)) {
			return entry.Manager
		}
	}
	return ""
}
