// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

// podDrift is the difference between a pod and its revision that other writers caused. Changes by admission when the
// pod was created are not drift.
type podDrift struct {
	// labels and annotations of the template, and labels of the PodCluster, that have another value or are missing.
	labels, annotations map[string]string
	// owner is the reference to the PodCluster, if the one of the pod has another content.
	owner *metav1.OwnerReference
	// images of the template, by the names of the containers that have another one.
	images map[string]string
	// lasting are fields that cannot be changed back in a running pod.
	lasting []string
	// metadata and spec describe each field of the metadata, and each one of the spec.
	metadata, spec []string
}

// text describes all of it.
func (d *podDrift) text() string { return strings.Join(slices.Concat(d.spec, d.metadata), ", ") }

func (d *podDrift) ofMetadata() bool {
	return d != nil && (len(d.labels)+len(d.annotations) > 0 || d.owner != nil)
}

func (d *podDrift) ofSpec() bool { return d != nil && len(d.images)+len(d.lasting) > 0 }

// withoutMetadata returns what is left when the metadata is restored.
func (d *podDrift) withoutMetadata() *podDrift {
	if !d.ofSpec() {
		return nil
	}
	return &podDrift{images: d.images, lasting: d.lasting, spec: d.spec}
}

// withoutSpec returns what is left when the images are restored.
func (d *podDrift) withoutSpec() *podDrift {
	if !d.ofMetadata() {
		return nil
	}
	return &podDrift{labels: d.labels, annotations: d.annotations, owner: d.owner, metadata: d.metadata}
}

// metadataOf returns the values of the metadata that differs.
func (d *podDrift) metadataOf(pod *corev1.Pod) any {
	labels, annotations := map[string]string{}, map[string]string{}
	for name := range d.labels {
		labels[name] = pod.Labels[name]
	}
	for name := range d.annotations {
		annotations[name] = pod.Annotations[name]
	}
	var references []metav1.OwnerReference
	if d.owner != nil {
		references = referencesTo(d.owner.UID, pod)
	}
	return []any{labels, annotations, references}
}

// specOf returns the values of all fields of a pod's spec that can differ.
func specOf(pod *corev1.Pod) any {
	images := map[string]string{}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		images[container.Name] = container.Image
	}
	return []any{
		images, pod.Spec.ActiveDeadlineSeconds, pod.Spec.Affinity, pod.Spec.NodeSelector, pod.Spec.SchedulingGates,
		pod.Spec.TerminationGracePeriodSeconds, pod.Spec.Tolerations,
	}
}

// lasting are the fields of a running pod that can be set, but not set back.
var lasting = []string{
	"spec.activeDeadlineSeconds", "spec.affinity", "spec.nodeSelector", "spec.schedulingGates", "spec.terminationGracePeriodSeconds", "spec.tolerations",
}

// findDrift compares the pods with the revisions that they follow. A pod whose label does not name its revision gets the
// label back.
func (r *Reconciler) findDrift(_ context.Context, s *scope) error {
	every := belongingTo(s.cluster)
	for _, m := range s.world.members {
		if m.terminating {
			continue
		}
		expected := every.with(m.pod, labelOrdinal, strconv.Itoa(m.ordinal))
		var template *sharedv1.PodTemplate
		revision := followed(s.cluster, s.world.revisions, m)
		m.hash = ""
		if revision != nil {
			template, m.hash = revision.template, revision.hash
			expected = expected.with(m.pod, labelRevision, m.hash)
		}
		m.drift = driftOf(s.pass, m.pod, expected, template)
		if m.drift == nil && revision != nil && isUnlike(s.cluster, revision, m) {
			m.drift = &podDrift{lasting: []string{clearedText}, spec: []string{clearedText}}
		}
	}
	return nil
}

// markContested finds the pods whose correction has to wait because another writer reverts each one.
func markContested(s *scope) {
	for _, m := range s.world.members {
		if !m.terminating {
			m.metadataContested = m.drift.ofMetadata() && s.isContested(m, m.drift.metadata, m.drift.metadataOf(m.pod))
			m.specContested = m.drift.ofSpec() && s.isContested(m, m.drift.spec, specOf(m.pod))
		}
	}
}

func (s *scope) isContested(m *member, fields []string, values any) bool {
	wait := s.pass.Contested(m.pod, fields, values)
	if due := s.world.now.Add(wait); wait > 0 && (s.world.truce.IsZero() || due.Before(s.world.truce)) {
		s.world.truce = due
	}
	return wait > 0
}

// ownership reports whether a field is still as we set it; flow.Pass implements it.
type ownership interface {
	OwnsField(object client.Object, path ...any) bool
	ForeignFields(object client.Object, kind string) map[string]string
}

// driftOf returns nil if there is none. Values are compared first, which is cheap. Only where one differs the server's
// records are read: a value that is still ours was changed by admission. Without a template, because the revision of the
// pod is unknown, only the metadata is compared that every pod of the PodCluster has.
func driftOf(owned ownership, pod *corev1.Pod, every belonging, template *sharedv1.PodTemplate) *podDrift {
	found := podDrift{labels: map[string]string{}, annotations: map[string]string{}, images: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(every.labels)) {
		if pod.Labels[name] != every.labels[name] {
			found.labels[name] = every.labels[name]
			found.metadata = append(found.metadata, "metadata.labels."+name+wasChanged)
		}
	}
	if !hasReference(pod, every.owner) {
		found.owner = &every.owner
		found.metadata = append(found.metadata, "metadata.ownerReferences"+wasChanged)
	}
	if template != nil {
		found.compare(owned, pod, template)
	}
	if !found.ofMetadata() && !found.ofSpec() {
		return nil
	}
	slices.Sort(found.lasting)
	found.spec = slices.Concat(found.lasting, found.spec)
	return &found
}

// compare adds the differences between a pod and its template.
func (d *podDrift) compare(owned ownership, pod *corev1.Pod, template *sharedv1.PodTemplate) {
	foreign := owned.ForeignFields(pod, "Pod")
	if template.Metadata != nil {
		differing := func(what string, want, have, into map[string]string) {
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if value, has := have[name]; has && value == want[name] || isReserved(name) || owned.OwnsField(pod, "metadata", what, name) {
					continue
				}
				into[name] = want[name]
				d.metadata = append(d.metadata, "metadata."+what+"."+name+wasChanged)
			}
		}
		differing("labels", template.Metadata.Labels, pod.Labels, d.labels)
		differing("annotations", template.Metadata.Annotations, pod.Annotations, d.annotations)
	}
	compareImages := func(list string, want []sharedv1.Container, have []corev1.Container) {
		for i := range want {
			index := slices.IndexFunc(have, func(c corev1.Container) bool { return c.Name == want[i].Name })
			if index < 0 || have[index].Image == want[i].Image || owned.OwnsField(pod, "spec", list, fieldpath.KeyByFields("name", want[i].Name), "image") {
				continue
			}
			d.images[want[i].Name] = want[i].Image
			change := "spec." + list + "[" + want[i].Name + "].image was changed"
			if manager, known := foreign["spec."+list+"[].image"]; known {
				change += " by " + manager
			}
			d.spec = append(d.spec, change)
		}
	}
	compareImages("containers", template.Spec.Containers, pod.Spec.Containers)
	compareImages("initContainers", template.Spec.InitContainers, pod.Spec.InitContainers)
	d.compareInjected(foreign, pod, template)
	for name, manager := range foreign {
		index := slices.IndexFunc(lasting, func(field string) bool { return name == field || strings.HasPrefix(name, field+".") })
		// A manager that has set the existing value has changed nothing.
		if index >= 0 && !sameValue(strings.TrimPrefix(lasting[index], "spec."), &template.Spec, &pod.Spec) {
			d.lasting = append(d.lasting, name+" was changed by "+manager)
		}
	}
}

// compareInjected adds the images of containers that are not in the template, and that another writer has changed since
// admission has added them. What they were is unknown, so only another pod has them again.
func (d *podDrift) compareInjected(foreign map[string]string, pod *corev1.Pod, template *sharedv1.PodTemplate) {
	injected := func(list string, own []sharedv1.Container, have []corev1.Container) {
		// Whoever has restored a pod from a backup has set all of it.
		if _, known := foreign["spec."+list+"[].image"]; !known || !isCreatedByUs(pod) {
			return
		}
		for i := range have {
			if slices.ContainsFunc(own, func(c sharedv1.Container) bool { return c.Name == have[i].Name }) {
				continue
			}
			if manager := setter(pod, "spec", list, fieldpath.KeyByFields("name", have[i].Name), "image"); manager != "" {
				d.lasting = append(d.lasting, "spec."+list+"["+have[i].Name+"].image was changed by "+manager)
			}
		}
	}
	injected("containers", template.Spec.Containers, pod.Spec.Containers)
	injected("initContainers", template.Spec.InitContainers, pod.Spec.InitContainers)
}

// defaultTolerationSeconds is the server's default toleration of a lost node.
const defaultTolerationSeconds = 300

// sameValue reports whether a field of a pod's spec has the value of its template, or the server's default.
func sameValue(field string, template *sharedv1.PodSpec, pod *corev1.PodSpec) bool {
	pod = pod.DeepCopy()
	// Every pod tolerates for a while that its node is not ready or unreachable, unless its template sets other
	// tolerations.
	pod.Tolerations = slices.DeleteFunc(pod.Tolerations, func(toleration corev1.Toleration) bool {
		isOwn := slices.ContainsFunc(template.Tolerations, func(own sharedv1.Toleration) bool { return own.Key == toleration.Key })
		return !isOwn && isServersToleration(&toleration)
	})
	template = template.DeepCopy()
	if template.TerminationGracePeriodSeconds == nil {
		template.TerminationGracePeriodSeconds = ptr.To[int64](corev1.DefaultTerminationGracePeriodSeconds)
	}
	// Our types are selections of Kubernetes' own, with the same names in JSON.
	var want, have map[string]any
	for from, to := range map[any]*map[string]any{template: &want, pod: &have} {
		data, err := json.Marshal(from)
		if err != nil || json.Unmarshal(data, to) != nil {
			return false
		}
	}
	return apiequality.Semantic.DeepEqual(want[field], have[field])
}

// isServersToleration reports whether the server gives a toleration to every pod.
func isServersToleration(toleration *corev1.Toleration) bool {
	return (toleration.Key == corev1.TaintNodeNotReady || toleration.Key == corev1.TaintNodeUnreachable) &&
		toleration.Operator == corev1.TolerationOpExists && toleration.Effect == corev1.TaintEffectNoExecute &&
		ptr.Deref(toleration.TolerationSeconds, 0) == defaultTolerationSeconds
}

// isReserved reports whether a label of the template gives way to one of ours.
func isReserved(label string) bool {
	switch label {
	case flow.LabelManagedBy, flow.LabelKind, flow.LabelInstance, labelRevision, labelOrdinal:
		return true
	default:
		return false
	}
}
