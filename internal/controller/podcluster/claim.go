// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
)

// clusterIndex finds pods and revisions by the object that controls them and by the PodCluster that their labels name,
// without looking at all of a namespace.
const clusterIndex = "podcluster"

// clusterKeys returns no keys for what another kind controls: there can be thousands of pods of Deployments, and each key takes
// some hundred bytes.
func clusterKeys(object client.Object) []string {
	var keys []string
	labels := object.GetLabels()
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil && (owner.Kind == "PodCluster" || labels[flow.LabelKind] == labelKind) {
		keys = append(keys, ownerKey(owner.UID))
	}
	if labels[flow.LabelKind] == labelKind {
		keys = append(keys, instanceKey(labels[flow.LabelInstance]))
	}
	return keys
}

func ownerKey(uid types.UID) string      { return "uid/" + string(uid) }
func instanceKey(instance string) string { return "instance/" + instance }

// findPods collects the PodCluster's pods, and adopts pods without a controller. A pod that it controls belongs to it
// whatever its labels are: they will be restored. To release the pod would leave its number without a pod, because the
// name stays taken.
func (r *Reconciler) findPods(ctx context.Context, s *scope) error {
	owned, err := r.listPods(ctx, s.cluster, ownerKey(s.cluster.UID))
	if err != nil {
		return err
	}
	for i := range owned {
		s.addMember(&owned[i])
	}
	labelled, err := r.listPods(ctx, s.cluster, instanceKey(s.cluster.Name))
	if err != nil {
		return err
	}
	for i := range labelled {
		pod := &labelled[i]
		if _, ours := ordinalOf(s.cluster.Name, pod.Name); !ours || metav1.GetControllerOf(pod) != nil || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if pod, err = adopt(ctx, r, s, pod); err != nil {
			if flow.Reason(err) == flow.ReasonContested {
				// The other pods need not wait.
				s.contest(err)
				continue
			}
			return err
		}
		if pod != nil {
			s.addMember(pod)
		}
	}
	return nil
}

func (s *scope) addMember(pod *corev1.Pod) {
	if m := memberOf(s.cluster.Name, pod); m != nil {
		s.world.members = append(s.world.members, m)
	}
}

// listPods returns pods of the cache itself, which must not be changed: a PodCluster can have thousands.
func (r *Reconciler) listPods(ctx context.Context, cluster *kubegroupv1.PodCluster, key string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingFields{clusterIndex: key}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return list.Items, nil
}

// isPredecessors reports whether an object belongs to a PodCluster that had the same name and was deleted. It will be
// collected.
func isPredecessors(cluster *kubegroupv1.PodCluster, object client.Object) bool {
	owner, ours := metav1.GetControllerOf(object), controllerRef(cluster)
	return owner != nil && owner.APIVersion == ours.APIVersion && owner.Kind == ours.Kind && owner.Name == ours.Name && owner.UID != ours.UID
}

// mayAdopt asks the server whether the PodCluster still exists and is not being deleted. The cache may not know yet, and
// to adopt what a deletion has just orphaned on purpose would be wrong.
func (r *Reconciler) mayAdopt(ctx context.Context, s *scope) error {
	s.adopting.Lock()
	defer s.adopting.Unlock()
	if s.adoptable {
		return nil
	}
	fresh := &kubegroupv1.PodCluster{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(s.cluster), fresh); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the PodCluster before adoption: %w", err)
	}
	if fresh.UID != s.cluster.UID || !fresh.DeletionTimestamp.IsZero() {
		// Its event will arrive.
		return flow.Waiting("Deleting", "PodCluster %s is being deleted or was replaced, so it adopts nothing", s.cluster.Name)
	}
	s.adoptable = true
	return nil
}

// adopt makes the PodCluster the controller of an object, and returns the updated object; nil if it is gone.
func adopt[T client.Object](ctx context.Context, r *Reconciler, s *scope, object T) (adopted T, err error) {
	adopted, gone, err := claim(ctx, r, s, object, nil)
	if err == nil && !gone {
		s.pass.Changed("Adopted %s", object.GetName())
	}
	return adopted, err
}

// adoptForeign adopts a pod whatever its labels are, and gives it those by which the cache and the PodCluster find it. It
// may have no label of a revision then, so the next pass compares it with the revisions. It is called for several pods at a time.
func (r *Reconciler) adoptForeign(ctx context.Context, s *scope, pod *corev1.Pod) outcome {
	ordinal, _ := ordinalOf(s.cluster.Name, pod.Name)
	labels := identity(s.cluster)
	labels[labelOrdinal] = strconv.Itoa(ordinal)
	adopted, gone, err := claim(ctx, r, s, pod, labels)
	if err != nil {
		return outcome{err: err, taken: flow.IsWaiting(err) || flow.Reason(err) == flow.ReasonContested}
	}
	if gone {
		return outcome{err: flow.WaitingFor(time.Millisecond, "Creating", "pod %s has just been deleted", pod.Name), taken: true}
	}
	return s.comparedLater(outcome{member: memberOf(s.cluster.Name, adopted), change: "Adopted Pod " + pod.Name})
}

// wasOurs reports whether a pod with one of the names, and without a controller, belonged to the PodCluster: a request that
// replaced it left out its labels and owner references. The name stays taken, so nothing is gained by releasing it.
func wasOurs(cluster *kubegroupv1.PodCluster, pod *corev1.Pod) bool {
	return isCreatedByUs(pod) || slices.ContainsFunc(pod.OwnerReferences, func(one metav1.OwnerReference) bool { return one.UID == cluster.UID })
}

// claim makes the PodCluster the controller of an object, and sets labels.
func claim[T client.Object](ctx context.Context, r *Reconciler, s *scope, object T, labels map[string]string) (claimed T, gone bool, err error) {
	var none T
	restored, err := s.pass.MayRestore(object, []string{"metadata.ownerReferences was removed"}, referencesTo(s.cluster.UID, object))
	if err != nil {
		return none, false, err
	}
	if err := r.mayAdopt(ctx, s); err != nil {
		return none, false, err
	}
	object = object.DeepCopyObject().(T)
	before := object.DeepCopyObject().(T)
	object.SetOwnerReferences(withReference(object.GetOwnerReferences(), controllerRef(s.cluster)))
	if len(labels) > 0 {
		all := map[string]string{}
		maps.Copy(all, object.GetLabels())
		maps.Copy(all, labels)
		if !ownsText(object, revisionText) {
			// A revision of another controller is none of ours.
			delete(all, labelRevision)
		}
		object.SetLabels(all)
	}
	// With its version it is an object that still has no controller.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	hidden, err := r.patch(ctx, s, object, patch)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return none, true, nil
		}
		return none, false, fmt.Errorf("adopting %s: %w", before.GetName(), err)
	}
	restored()
	return object, false, hidden
}
