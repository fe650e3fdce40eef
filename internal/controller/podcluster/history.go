// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/flow"
)

// maxCollisions is how many names are tried for a revision in one pass.
const maxCollisions = 10

// findRevisions collects the revisions and ensures that there is one for the template.
func (r *Reconciler) findRevisions(ctx context.Context, s *scope) error {
	template, err := templateOf(&s.cluster.Spec)
	if err != nil {
		return err
	}
	data, err := dataOf(template)
	if err != nil {
		return err
	}
	known, err := r.listRevisions(ctx, s)
	if err != nil {
		return err
	}
	var update *revision
	for _, one := range known {
		if one.holds(data) && (update == nil || one.object.Revision > update.object.Revision) {
			update = one
		}
	}
	numbers, next := numbersOf(s.pass, known, update)
	for _, one := range known {
		if err := r.restoreRevision(ctx, s, one, numbers[one]); err != nil {
			return err
		}
	}
	if update == nil {
		if update, err = r.createRevision(ctx, s, data, next); err != nil {
			return err
		}
	}
	s.world.revisions = make(map[string]*revision, len(known)+1)
	s.world.update, s.world.current = update, update
	for _, one := range known {
		s.world.revisions[one.hash] = one
		if one.object.Name == s.cluster.Status.CurrentRevision {
			s.world.current = one
		}
	}
	s.world.revisions[update.hash] = update
	return nil
}

// largestNumber is more than a PodCluster ever gets to, and far from the largest number that the server accepts.
const largestNumber = 1 << 53

// numbersOf returns the number that each revision should have, and the one of the next revision. The revision of the template
// has the highest one, as after a rollback. Only the order matters, so a number that another writer has raised above it
// becomes the lowest one.
func numbersOf(owned ownership, known []*revision, update *revision) (numbers map[*revision]int64, next int64) {
	numbers = make(map[*revision]int64, len(known))
	newest := int64(0)
	for _, one := range known {
		number := one.object.Revision
		isNewer := update == nil || number > update.object.Revision
		if number > largestNumber || one != update && isNewer && ownsText(one.object, dataText) && !owned.OwnsField(one.object, "revision") {
			number = 0
		}
		numbers[one] = number
		newest = max(newest, number)
	}
	if update != nil && (numbers[update] < newest || numbers[update] == 0) {
		numbers[update] = newest + 1
	}
	return numbers, newest + 1
}

// listRevisions returns the revisions of the PodCluster, whatever their labels are, and adopts orphaned ones.
func (r *Reconciler) listRevisions(ctx context.Context, s *scope) (known []*revision, err error) {
	var owned, labelled appsv1.ControllerRevisionList
	for key, list := range map[string]*appsv1.ControllerRevisionList{ownerKey(s.cluster.UID): &owned, instanceKey(s.cluster.Name): &labelled} {
		err := r.Client.List(ctx, list, client.InNamespace(s.cluster.Namespace), client.MatchingFields{clusterIndex: key}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing revisions: %w", err)
		}
	}
	for i := range owned.Items {
		if one := readRevision(s.cluster.Name, &owned.Items[i]); one != nil {
			known = append(known, one)
		}
	}
	for i := range labelled.Items {
		if metav1.GetControllerOfNoCopy(&labelled.Items[i]) == nil {
			if known, err = r.adoptRevision(ctx, s, known, &labelled.Items[i]); err != nil {
				return nil, err
			}
		}
	}
	return r.findHidden(ctx, s, known)
}

func (r *Reconciler) adoptRevision(ctx context.Context, s *scope, known []*revision, orphan *appsv1.ControllerRevision) ([]*revision, error) {
	one := readRevision(s.cluster.Name, orphan)
	if one == nil {
		return known, nil
	}
	adopted, err := adopt(ctx, r, s, orphan)
	if flow.Reason(err) == flow.ReasonContested {
		s.contest(err)
		return append(known, one), nil
	}
	if err != nil || adopted == nil {
		return known, err
	}
	one.object = adopted
	return append(known, one), nil
}

// dataText is the content of a revision in an entry of the managed fields. Its creator owns it.
const dataText = `"f:data":{`

// mostHidden is how many revisions a pass reads from the server.
const mostHidden = 10

// findHidden adds the revisions that the status and the pods name or that have vanished from the cache, if they have only lost the
// label of the fleet. Nearly always there are none, and nothing is read.
func (r *Reconciler) findHidden(ctx context.Context, s *scope, known []*revision) ([]*revision, error) {
	names := map[string]bool{s.cluster.Status.CurrentRevision: true}
	for _, m := range s.world.members {
		if m.hash != "" && !m.terminating {
			names[s.cluster.Name+"-"+m.hash] = true
		}
	}
	for _, name := range r.vanished.of(s.cluster.UID) {
		names[name] = true
	}
	delete(names, "")
	for _, one := range known {
		delete(names, one.object.Name)
		r.vanished.forget(s.cluster.UID, one.object.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(names))[:min(len(names), mostHidden)] {
		object := &appsv1.ControllerRevision{}
		if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: name}, object); err != nil {
			if apierrors.IsNotFound(err) {
				r.vanished.forget(s.cluster.UID, name)
				continue
			}
			return nil, fmt.Errorf("reading revision %s: %w", name, err)
		}
		one := readRevision(s.cluster.Name, object)
		switch {
		case one == nil:
			r.vanished.forget(s.cluster.UID, name)
		case metav1.IsControlledBy(object, s.cluster):
			known = append(known, one)
		case metav1.GetControllerOf(object) == nil && ownsText(object, dataText):
			var err error
			if known, err = r.adoptRevision(ctx, s, known, object); err != nil {
				return nil, err
			}
		}
	}
	return known, nil
}

// createRevision stores a template. If its name is taken, it tries others.
func (r *Reconciler) createRevision(ctx context.Context, s *scope, data []byte, number int64) (*revision, error) {
	collisions := ptr.Deref(s.cluster.Status.CollisionCount, 0)
	for range maxCollisions {
		object := revisionObject(s.cluster, data, revisionHash(data, collisions), number)
		hidden, err := r.create(ctx, s, object)
		if err == nil {
			s.pass.Changed("Created ControllerRevision %s", object.Name)
			s.contest(hidden)
			return readRevision(s.cluster.Name, object), nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, flow.Refused(fmt.Errorf("creating revision %s: %w", object.Name, err))
		}
		there := &appsv1.ControllerRevision{}
		if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(object), there); err != nil {
			return nil, fmt.Errorf("reading revision %s: %w", object.Name, err)
		}
		if found := readRevision(s.cluster.Name, there); found != nil && found.holds(data) && metav1.IsControlledBy(there, s.cluster) {
			// It has lost its labels.
			return found, r.restoreRevision(ctx, s, found, there.Revision)
		}
		if isPredecessors(s.cluster, there) {
			// Its end is watched, as it has our labels.
			return nil, flow.Waiting(ReasonNameNotFree, "ControllerRevision %s of a deleted PodCluster is being deleted", there.Name)
		}
		collisions++
		s.cluster.Status.CollisionCount = ptr.To(collisions)
	}
	return nil, errors.New("all names tried for a revision are in use")
}

// restoreRevision restores the labels, the owner reference and the number of a revision. A number that is too low is no
// drift, unless another writer has set it: after a rollback, the revision becomes the newest one.
func (r *Reconciler) restoreRevision(ctx context.Context, s *scope, one *revision, number int64) error {
	before := one.object
	wanted := revisionObject(s.cluster, nil, one.hash, number)
	var lost []string
	had := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(wanted.Labels)) {
		if had[name] = before.Labels[name]; had[name] != wanted.Labels[name] {
			lost = append(lost, "metadata.labels."+name+wasChanged)
		}
	}
	if !hasReference(before, wanted.OwnerReferences[0]) {
		lost = append(lost, "metadata.ownerReferences"+wasChanged)
	}
	isOld := before.Revision < number && s.pass.OwnsField(before, "revision")
	if before.Revision != number && !isOld {
		lost = append(lost, "revision"+wasChanged)
	}
	if !isOld && len(lost) == 0 || !before.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(before, s.cluster) {
		return nil
	}
	after := before.DeepCopy()
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	maps.Copy(after.Labels, wanted.Labels)
	after.OwnerReferences = withReference(after.OwnerReferences, wanted.OwnerReferences[0])
	after.Revision = number
	restored, err := s.pass.MayRestore(before, lost, []any{had, referencesTo(s.cluster.UID, before), before.Revision})
	if err != nil && !isOld {
		// The revision is known nevertheless, so the pods need not wait.
		s.contest(err)
		return nil
	}
	texts := r.withWriters(ctx, s, before, &appsv1.ControllerRevision{}, lost)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	hidden, err := r.patch(ctx, s, after, patch)
	if err != nil {
		return fmt.Errorf("updating revision %s: %w", before.Name, err)
	}
	one.object = after
	if hidden != nil {
		s.contest(hidden)
		return nil
	}
	if len(lost) == 0 {
		s.pass.Changed("Updated ControllerRevision %s", before.Name)
		return nil
	}
	if restored != nil {
		restored()
	}
	s.pass.Restored("Restored ControllerRevision %s: %s", before.Name, strings.Join(texts, ", "))
	return nil
}

// pruneRevisions deletes the oldest unused revisions, and keeps as many as the spec sets.
func (r *Reconciler) pruneRevisions(ctx context.Context, s *scope) error {
	for _, one := range pruned(&s.world) {
		err := r.Client.Delete(ctx, one.object.DeepCopy(), client.Preconditions{UID: ptr.To(one.object.UID)})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting revision %s: %w", one.object.Name, err)
		}
		s.pass.Changed("Deleted ControllerRevision %s", one.object.Name)
	}
	return nil
}

func pruned(w *world) []*revision {
	used := map[string]bool{w.update.hash: true, w.current.hash: true}
	for _, m := range w.members {
		used[m.hash] = true
	}
	var history []*revision
	for _, one := range w.revisions {
		if !used[one.hash] && one.object.DeletionTimestamp.IsZero() {
			history = append(history, one)
		}
	}
	slices.SortFunc(history, func(a, b *revision) int { return cmp.Compare(a.object.Revision, b.object.Revision) })
	return history[:max(0, len(history)-w.historyLimit)]
}
