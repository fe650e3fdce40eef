// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/workload"
)

// fieldOwner is the field manager of this controller's writes.
const fieldOwner = client.FieldOwner("opdock-podcluster")

const (
	// largestBatch is the maximum number of concurrent requests for one PodCluster.
	largestBatch = 64
	// mostPerPass is the maximum number of pods that a reconcile creates, deletes or changes, so the status is written
	// in between when there are thousands.
	mostPerPass = 500
)

// ReasonNameNotFree means that the name of a pod belongs to one that is on its way out.
const ReasonNameNotFree = "NameNotFree"

// carryOut carries out the plan. Deletions come first: they can make room for new pods, and later failures do not
// delay them. An update can end although corrections have to wait because another writer reverts them.
func (r *Reconciler) carryOut(ctx context.Context, s *scope) error {
	err := flow.RunAll(ctx, s,
		r.each(remove, r.deletePod),
		r.each(renew, r.renewPod),
		r.each(mend, r.mendPod),
		r.each(label, r.labelPod),
		r.each(create, r.createPod),
	)
	if err != nil && !s.hindered {
		s.postponed = err
		return nil
	}
	return err
}

// outcome is what became of an action.
type outcome struct {
	// member is the pod afterwards; nil if it is unknown.
	member *member
	// change is for the event; empty if nothing was changed.
	change string
	// restored means that the change corrected drift.
	restored bool
	err      error
	// taken means that the error is about this name only.
	taken bool
}

// each carries out the actions of one verb in batches of 1, 2, 4 and so on, and stops after a batch with a
// failure. If the server refuses a request, it is sent once and not a thousand times.
func (r *Reconciler) each(verb verb, do func(context.Context, *scope, action) outcome) flow.Phase[*scope] {
	return func(ctx context.Context, s *scope) error {
		var todo []action
		for _, a := range s.plan.actions {
			if a.verb == verb {
				todo = append(todo, a)
			}
		}
		var taken error
		done := 0
		for size := 1; len(todo) > 0; size = min(2*size, largestBatch) {
			if done >= mostPerPass {
				s.hindered = true
				return flow.WaitingFor(time.Millisecond, "InProgress", "%d more pods wait for the next batch", len(todo))
			}
			batch := todo[:min(size, len(todo))]
			todo = todo[len(batch):]
			outcomes := make([]outcome, len(batch))
			var group sync.WaitGroup
			for i, a := range batch {
				group.Go(func() { outcomes[i] = do(ctx, s, a) })
			}
			group.Wait()
			var failed error
			for i, o := range outcomes {
				s.note(batch[i], o)
				if o.err != nil && (batch[i].member == nil || !o.isAboutOne()) {
					s.hindered = true
				}
				switch {
				case o.err == nil:
					done++
				case o.taken:
					if flow.IsStalled(o.err) {
						taken = soonest(o.err, taken)
					} else {
						taken = soonest(taken, o.err)
					}
				case failed == nil:
					failed = o.err
				}
			}
			if failed != nil {
				return soonest(failed, taken)
			}
		}
		return taken
	}
}

// isAboutOne reports whether another writer, or admission, has its way with a pod, on which nothing else depends.
func (o outcome) isAboutOne() bool {
	return o.taken && (flow.Reason(o.err) == flow.ReasonContested || flow.Reason(o.err) == flow.ReasonLabelChanged)
}

// note updates the known pods, so the status need not wait for the watch.
func (s *scope) note(a action, o outcome) {
	switch {
	case o.restored:
		s.pass.Restored("%s", o.change)
	case o.change != "":
		s.pass.Changed("%s", o.change)
	}
	if o.member == nil {
		return
	}
	if a.member == nil {
		s.world.members = append(s.world.members, o.member)
		return
	}
	*a.member = *o.member
}

func (r *Reconciler) createPod(ctx context.Context, s *scope, a action) outcome {
	pod, err := podOf(s.cluster, a.revision, a.ordinal)
	if err != nil {
		return outcome{err: flow.Stalled(ReasonInvalidSpec, err)}
	}
	// While a name is taken, a request to create it would fail.
	if isTaken(s) {
		if found := r.whoHas(ctx, s, pod.Name); !apierrors.IsNotFound(found.err) {
			return found
		}
	}
	hidden, err := r.create(ctx, s, pod)
	switch {
	case err == nil:
		return outcome{member: memberOf(s.cluster.Name, pod), change: "Created Pod " + pod.Name, err: hidden}
	case apierrors.IsAlreadyExists(err):
		return r.whoHas(ctx, s, pod.Name)
	default:
		return outcome{err: flow.Refused(workload.Advise(fmt.Errorf("creating pod %s: %w", pod.Name, err), &pod.Spec))}
	}
}

// isTaken reports whether the last pass found a name that is taken, also by a pod that the cache does not hold.
func isTaken(s *scope) bool {
	ready := meta.FindStatusCondition(s.cluster.Status.Conditions, sharedv1.ConditionReady)
	return ready != nil && slices.Contains([]string{flow.ReasonResourceExists, ReasonNameNotFree, flow.ReasonLabelChanged}, ready.Reason)
}

// whoHas returns the outcome for a name that already exists, or that does not exist.
func (r *Reconciler) whoHas(ctx context.Context, s *scope, name string) outcome {
	pod := &corev1.Pod{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: name}, pod); err != nil {
		return outcome{err: fmt.Errorf("reading pod %s: %w", name, err)}
	}
	isFree := metav1.GetControllerOf(pod) == nil && pod.DeletionTimestamp.IsZero()
	if isFree && (s.cluster.Annotations[flow.AdoptAnnotation] == "true" || wasOurs(s.cluster, pod)) {
		return r.adoptForeign(ctx, s, pod)
	}
	if !metav1.IsControlledBy(pod, s.cluster) {
		return outcome{err: r.yield(ctx, s, pod), taken: true}
	}
	if pod.Labels[flow.LabelManagedBy] == flow.ManagedBy {
		return outcome{err: flow.Waiting("Creating", "pod %s was just created", name), taken: true}
	}
	if !pod.DeletionTimestamp.IsZero() {
		return outcome{err: r.yield(ctx, s, pod), taken: true}
	}
	// The cache does not hold it, because it has lost that label.
	hidden := memberOf(s.cluster.Name, pod)
	if followed(s.cluster, s.world.revisions, hidden) != s.world.revisions[hidden.hash] {
		hidden.hash = ""
	}
	hidden.drift = driftOf(s.pass, pod, belongingTo(s.cluster).with(pod, labelOrdinal, strconv.Itoa(hidden.ordinal)), nil)
	return s.comparedLater(r.labelPod(ctx, s, action{verb: label, ordinal: hidden.ordinal, member: hidden}))
}

// comparedLater lets the next pass compare a pod with the revisions that has no label of one. Until then, nothing is known
// about it, and the revision that it follows must not be pruned.
func (s *scope) comparedLater(done outcome) outcome {
	if done.err == nil && done.member != nil && s.world.revisions[done.member.hash] == nil {
		done.err = flow.WaitingFor(time.Millisecond, "Comparing", "pod %s will be compared with the revisions", done.member.pod.Name)
		done.taken = true
	}
	return done
}

// yield waits until the pod that has a name is gone. It is reported only if it is overdue.
func (r *Reconciler) yield(ctx context.Context, s *scope, pod *corev1.Pod) error {
	err := s.pass.Taken(ctx, pod)
	if flow.IsStalled(err) && (!pod.DeletionTimestamp.IsZero() || isPredecessors(s.cluster, pod)) {
		return flow.Waiting(ReasonNameNotFree, "the previous pod %s is terminating", pod.Name)
	}
	return err
}

func (r *Reconciler) deletePod(ctx context.Context, s *scope, a action) outcome {
	pod := a.member.pod
	replaced := func() {}
	if a.drifted {
		var err error
		if replaced, err = s.pass.MayReplace(pod, a.member.drift.spec, specOf(pod), reactionTo(pod, s.world.minReady)); err != nil {
			return outcome{err: err, taken: true}
		}
	}
	options := []client.DeleteOption{client.Preconditions{UID: ptr.To(pod.UID)}}
	if pod.Labels[flow.LabelManagedBy] != flow.ManagedBy {
		// The cache does not hold it, so it will not report the deletion.
		options = append(options, client.DisableReadYourWritesConsistency)
	}
	r.vanishedPods.noteRemoval(pod.UID, s.world.now)
	err := r.Client.Delete(ctx, pod.DeepCopy(), options...)
	if client.IgnoreNotFound(err) != nil {
		r.vanishedPods.forgetRemoval(pod.UID)
		return outcome{err: flow.Refused(fmt.Errorf("deleting pod %s: %w", pod.Name, err))}
	}
	replaced()
	leaving := *a.member
	leaving.pod = pod.DeepCopy()
	leaving.pod.DeletionTimestamp = ptr.To(metav1.NewTime(s.world.now))
	leaving.terminating, leaving.ready = true, false
	return outcome{member: &leaving, change: fmt.Sprintf("Deleted Pod %s (%s)", pod.Name, a.why)}
}

// reactionTo returns how soon after its replacement a pod must differ in the same fields to count as a reaction to it: a
// minute after the old pod was given time to stop, and the new one to be available and to reach the age at which it is
// replaced.
func reactionTo(pod *corev1.Pod, minReady time.Duration) time.Duration {
	grace := time.Duration(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)) * time.Second
	return grace + minReady + youngest + time.Minute
}

func (r *Reconciler) renewPod(ctx context.Context, s *scope, a action) outcome {
	before := a.member.pod
	after, err := renewed(before, changedImages(s.world.revisions[a.member.hash], a.revision, a.member.drift), a.revision, r.Now())
	if err != nil {
		return outcome{err: err}
	}
	return r.patchPod(ctx, s, before, after, "Updated Pod %s in place")
}

// mendPod gives a pod back the images of its revision.
func (r *Reconciler) mendPod(ctx context.Context, s *scope, a action) outcome {
	after, err := renewed(a.member.pod, a.member.drift.images, a.revision, r.Now())
	if err != nil {
		return outcome{err: err}
	}
	done := r.restorePod(ctx, s, a.member, after, a.member.drift.spec, specOf(a.member.pod))
	if done.member != nil {
		done.member.drift = a.member.drift.withoutSpec()
	}
	return done
}

// labelPod gives a pod the metadata that it has lost.
func (r *Reconciler) labelPod(ctx context.Context, s *scope, a action) outcome {
	after, drift := a.member.pod.DeepCopy(), a.member.drift
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	maps.Copy(after.Labels, drift.labels)
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	maps.Copy(after.Annotations, drift.annotations)
	if drift.owner != nil {
		after.OwnerReferences = withReference(after.OwnerReferences, *drift.owner)
	}
	done := r.restorePod(ctx, s, a.member, after, drift.metadata, drift.metadataOf(a.member.pod))
	if done.member != nil {
		// The label may name a revision that the pod does not follow. If it was restored, it names the one that it does.
		done.member.hash = a.member.hash
		done.member.drift = drift.withoutMetadata()
	}
	return done
}

// restorePod corrects fields of a pod, which have these values now.
func (r *Reconciler) restorePod(ctx context.Context, s *scope, m *member, after *corev1.Pod, fields []string, values any) outcome {
	restored, err := s.pass.MayRestore(m.pod, fields, values)
	if err != nil {
		return outcome{err: err, taken: true}
	}
	texts := r.withWriters(ctx, s, m.pod, &corev1.Pod{}, fields)
	done := r.patchPod(ctx, s, m.pod, after, "Restored Pod %s: "+strings.ReplaceAll(strings.Join(texts, ", "), "%", "%%"))
	if done.err != nil {
		done.change = ""
	}
	if done.restored = done.change != ""; done.restored {
		restored()
	}
	return done
}

func (r *Reconciler) patchPod(ctx context.Context, s *scope, before, after *corev1.Pod, change string) outcome {
	// The write depends on the version that was read, so it must not have changed.
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	hidden, err := r.patch(ctx, s, after, patch)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return outcome{}
		}
		return outcome{err: flow.Refused(fmt.Errorf("updating pod %s: %w", before.Name, err))}
	}
	// No more is done while pods are not watched.
	isWatched := after.Labels[flow.LabelManagedBy] == flow.ManagedBy
	return outcome{member: memberOf(s.cluster.Name, after), change: fmt.Sprintf(change, before.Name), err: hidden, taken: hidden != nil && isWatched}
}
