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
	newest := int64(0)
	var update *revision
	for _, one := range known {
		newest = max(newest, one.object.Revision)
		if one.holds(data) && (update == nil || one.object.Revision > update.object.Revision) {
			update = one
		}
	}
	if update == nil {
		update, err = r.createRevision(ctx, s, data, newest+1)
	} else {
		err = r.restoreRevision(ctx, s, update, newest)
	}
	if err != nil {
		return err
	}
	s.world.revisions = map[string]*revision{update.hash: update}
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

// listRevisions returns the revisions of the PodCluster, and adopts orphaned ones.
func (r *Reconciler) listRevisions(ctx context.Context, s *scope) ([]*revision, error) {
	var list appsv1.ControllerRevisionList
	if err := r.Client.List(ctx, &list, client.InNamespace(s.cluster.Namespace), client.MatchingLabels(selector(s.cluster))); err != nil {
		return nil, fmt.Errorf("listing revisions: %w", err)
	}
	var known []*revision
	for i := range list.Items {
		one := readRevision(s.cluster.Name, &list.Items[i])
		if one == nil {
			continue
		}
		owner := metav1.GetControllerOf(one.object)
		if owner != nil && owner.UID != s.cluster.UID {
			continue
		}
		if owner == nil {
			adopted, err := adopt(ctx, r, s, one.object)
			if err != nil {
				return nil, err
			}
			if adopted == nil {
				continue
			}
			one.object = adopted
		}
		known = append(known, one)
	}
	return known, nil
}

// createRevision stores a template. If its name is taken, it tries others.
func (r *Reconciler) createRevision(ctx context.Context, s *scope, data []byte, number int64) (*revision, error) {
	collisions := ptr.Deref(s.cluster.Status.CollisionCount, 0)
	for range maxCollisions {
		object := revisionObject(s.cluster, data, revisionHash(data, collisions), number)
		err := r.Client.Create(ctx, object, fieldOwner)
		if err == nil {
			s.pass.Changed("Created ControllerRevision %s", object.Name)
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

// restoreRevision makes the revision of the template the newest one, as after a rollback, and restores its labels.
func (r *Reconciler) restoreRevision(ctx context.Context, s *scope, update *revision, newest int64) error {
	wanted := revisionObject(s.cluster, nil, update.hash, newest)
	before := update.object
	after := before.DeepCopy()
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	maps.Copy(after.Labels, wanted.Labels)
	if after.Revision < newest {
		after.Revision = newest + 1
	}
	if after.Revision == before.Revision && maps.Equal(after.Labels, before.Labels) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch, fieldOwner); err != nil {
		return fmt.Errorf("updating revision %s: %w", before.Name, err)
	}
	update.object = after
	s.pass.Changed("Updated ControllerRevision %s", before.Name)
	return nil
}

// pruneRevisions deletes the oldest unused revisions, and keeps as many as the spec sets.
func (r *Reconciler) pruneRevisions(ctx context.Context, s *scope) error {
	for _, one := range pruned(&s.world) {
		err := r.Client.Delete(ctx, one.object, client.Preconditions{UID: ptr.To(one.object.UID)})
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
