// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// Finalizer is set on objects whose kind has to clean up before deletion.
const Finalizer = "opdock.dev/finalizer"

// Kind describes a kind to the Reconciler.
type Kind[T client.Object] struct {
	// Name as in manifests, such as AppService.
	Name string
	// View gives access to what all kinds have.
	View func(object T) View
	// Reconcile moves the object towards its spec. It changes the cluster through the pass, and sets the object's
	// status except the common conditions, which are derived from the returned outcome.
	Reconcile func(ctx context.Context, pass *Pass, object T) error
	// Finalize, if there is one, is called instead when the object is being deleted, until it returns nil.
	Finalize func(ctx context.Context, pass *Pass, object T) error
	// StatusIsMemory means that the status holds facts that cannot be determined again, so the first one is written
	// at once.
	StatusIsMemory bool
	// Paced means that the kind itself limits how often the status changes, so no change waits for MinorInterval.
	Paced bool
	// CachesAll means that the caches hold its children whatever their labels are, because they are objects of the fleet.
	CachesAll bool
}

// View is what all kinds have.
type View struct {
	Suspended          bool
	ObservedGeneration *int64
	Conditions         *[]metav1.Condition
}

// Reconciler does the part of a reconcile that is the same for all kinds.
type Reconciler[T client.Object] struct {
	Kind[T]

	// Client reads from the cache.
	Client client.Client
	// Reader reads from the server.
	Reader client.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock

	bystanders *bystanders
	own        ownWrites
	contests   contests
	shapes     shapes
	memory     memory
	first      firstStatuses
	minor      minorNews
	edited     editedStatuses
}

var _ reconcile.Reconciler = &Reconciler[client.Object]{}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler[T]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.minor.seen(request.NamespacedName)
	object := newObject[T]()
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// The status is compared with the cached object, which must not be older than our own last write.
	if r.own.supersedes(object) {
		clearObject(object)
		if err := r.Reader.Get(ctx, request.NamespacedName, object); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	// The managed fields are not used here, and every comparison of two versions would include them.
	object.SetManagedFields(nil)
	pass := &Pass{
		owner: object, fieldOwner: r.FieldOwner(), labelKind: strings.ToLower(r.Name),
		client: r.Client, reader: r.Reader, bystanders: r.bystanders, own: &r.own,
		shapes: r.shapes.of(r.Client.Scheme()), contests: &r.contests, now: r.Clock.Now(), cachesAll: r.CachesAll,
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return r.finalize(ctx, pass, object)
	}
	return r.look(ctx, pass, object)
}

func newObject[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

func (r *Reconciler[T]) forget(key types.NamespacedName) {
	r.first.done(key)
	r.edited.forget(key)
	r.own.forget(r.memory.forget(key))
}

// FieldOwner is under which name this kind's controller applies.
func (r *Reconciler[T]) FieldOwner() string { return "opdock-" + strings.ToLower(r.Name) }

func (r *Reconciler[T]) look(ctx context.Context, pass *Pass, object T) (ctrl.Result, error) {
	contested := r.ensureFinalizer(ctx, pass, object)
	if stall := (*stalled)(nil); errors.As(contested, &stall) {
		r.requeue(object, stall.after) // whatever else it is waiting for
	} else if contested != nil {
		return ctrl.Result{}, contested
	}
	before := object.DeepCopyObject().(T)
	view := r.View(object)
	pass.asksServer = r.memory.mayHaveObsolete(object,
		*view.ObservedGeneration != 0 && *view.ObservedGeneration != object.GetGeneration() || mayStillDelete(*view.Conditions))
	*view.ObservedGeneration = object.GetGeneration()
	if view.Suspended {
		setSuspended(view.Conditions, object.GetGeneration())
		reconciles.WithLabelValues(r.Name, string(outcomeSuspended)).Inc()
		later, err := r.writeStatus(ctx, before, object)
		return ctrl.Result{RequeueAfter: later}, err
	}
	r.memory.seen(object, r.Clock.Now())

	err := r.Kind.Reconcile(ctx, pass, object)
	if err == nil {
		err = contested
	}
	r.announce(object, pass)
	result := outcomeOf(err)
	r.memory.looked(object, pass.hasObsolete || pass.asksServer && result == outcomeFailed)
	reconciles.WithLabelValues(r.Name, string(result)).Inc()
	if result == outcomeFailed && isPassing(err) {
		return ctrl.Result{}, ignoreTerminating(err)
	}
	if held := (*hold)(nil); errors.As(err, &held) {
		return ctrl.Result{RequeueAfter: held.after}, r.restoreVerdict(ctx, before)
	}
	setConditions(view.Conditions, object.GetGeneration(), err)
	pass.addRemark(view.Conditions)
	r.warnIfStalled(before, object)
	if result == outcomeReady {
		r.memory.ready(object, r.Clock.Now(), r.Name)
	}
	later, statusErr := r.mayWait(before, result), error(nil)
	if later == 0 {
		later, statusErr = r.writeStatus(ctx, before, object)
	}
	if statusErr != nil {
		return ctrl.Result{}, errors.Join(failure(err), statusErr)
	}
	if later == 0 {
		r.rememberVerdict(object)
	}
	next, err := r.next(ctx, object, err)
	if later > 0 && (next.RequeueAfter == 0 || later < next.RequeueAfter) {
		next.RequeueAfter = later
	}
	return next, err
}

// next turns an outcome into when to come back.
func (r *Reconciler[T]) next(ctx context.Context, object T, err error) (ctrl.Result, error) {
	var (
		wait  *waiting
		stall *stalled
	)
	switch {
	case err == nil:
		return ctrl.Result{}, nil
	case errors.As(err, &wait):
		return ctrl.Result{RequeueAfter: wait.after}, nil
	case errors.As(err, &stall):
		log.FromContext(ctx).Info("Stalled", "reason", stall.reason, "message", stall.Error())
		if !stall.retry {
			return ctrl.Result{RequeueAfter: stall.after}, nil
		}
		if stall.after > 0 {
			// A time is ignored together with an error. The queue keeps the earlier one of this and the retry.
			r.requeue(object, stall.after)
		}
		return ctrl.Result{}, stall
	default:
		return ctrl.Result{}, err
	}
}

func (r *Reconciler[T]) finalize(ctx context.Context, pass *Pass, object T) (ctrl.Result, error) {
	if r.Finalize == nil || !controllerutil.ContainsFinalizer(object, Finalizer) {
		r.forget(client.ObjectKeyFromObject(object))
		return ctrl.Result{}, nil
	}
	before := object.DeepCopyObject().(T)
	err := r.Finalize(ctx, pass, object)
	r.announce(object, pass)
	if err != nil {
		return r.notYet(ctx, before, object, err)
	}
	reconciles.WithLabelValues(r.Name, string(outcomeDeleted)).Inc()
	controllerutil.RemoveFinalizer(object, Finalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, object, patch, client.FieldOwner(r.FieldOwner())); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("removing the finalizer: %w", err)
	}
	return ctrl.Result{}, nil
}

// notYet reports why an object that is being deleted still exists.
func (r *Reconciler[T]) notYet(ctx context.Context, before, object T, err error) (ctrl.Result, error) {
	result := outcomeOf(err)
	reconciles.WithLabelValues(r.Name, string(result)).Inc()
	if result == outcomeFailed && isPassing(err) {
		return ctrl.Result{}, err
	}
	view := r.View(object)
	*view.ObservedGeneration = object.GetGeneration()
	setConditions(view.Conditions, object.GetGeneration(), err)
	later, statusErr := r.writeStatus(ctx, before, object)
	next, err := r.next(ctx, object, err)
	if err := errors.Join(err, statusErr); err != nil {
		return ctrl.Result{}, err
	}
	if next.RequeueAfter == 0 {
		next.RequeueAfter = later
	}
	return next, nil
}

// mayStillDelete reports whether the last pass of an earlier process may not have deleted all obsolete children: it said so, or it
// failed, which may have been a deletion, or may hide one.
func mayStillDelete(conditions []metav1.Condition) bool {
	ready := meta.FindStatusCondition(conditions, sharedv1.ConditionReady)
	return ready != nil && slices.Contains([]string{reasonDeleting, reasonDeletingUnlabeled, ReasonRetrying}, ready.Reason) ||
		meta.IsStatusConditionTrue(conditions, sharedv1.ConditionStalled)
}

// ensureFinalizer adds the finalizer, unless another writer removes it again and again.
func (r *Reconciler[T]) ensureFinalizer(ctx context.Context, pass *Pass, object T) error {
	if r.Finalize == nil || controllerutil.ContainsFinalizer(object, Finalizer) {
		return nil
	}
	write := repetition{childOf: pass.childOf(object), signature: Finalizer}
	written, err := pass.mayWrite(write, "metadata.finalizers was changed by another writer", contestWithin)
	if err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(object.DeepCopyObject().(T), client.MergeFromWithOptimisticLock{})
	controllerutil.AddFinalizer(object, Finalizer)
	if err := r.Client.Patch(ctx, object, patch, client.FieldOwner(r.FieldOwner())); err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	written()
	return nil
}

// announce records one event for all changes and another one for all corrections, to save requests.
func (r *Reconciler[T]) announce(object T, pass *Pass) {
	emit := func(reason string, changes []string) {
		if len(changes) > 0 {
			// Events that differ only in their note count as repetitions of the first, so the action contains the
			// same text.
			r.Events.Eventf(object, nil, corev1.EventTypeNormal, reason, summary(changes, maxAction), "%s", summary(changes, maxNote))
		}
	}
	emit(ReasonSynced, pass.changes)
	emit(ReasonDriftCorrected, pass.repairs)
}

// maxNote and maxAction are the API's limits for the note and the action of an event.
const maxNote, maxAction = 1024, 128

func summary(changes []string, limit int) string {
	text := strings.Join(changes, ", ")
	if len(text) <= limit {
		return text
	}
	more := fmt.Sprintf(" … (%d changes)", len(changes))
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}

// warnIfStalled records a warning once, when the object stalls or the reason changes.
func (r *Reconciler[T]) warnIfStalled(before, after T) {
	was := meta.FindStatusCondition(*r.View(before).Conditions, sharedv1.ConditionStalled)
	is := meta.FindStatusCondition(*r.View(after).Conditions, sharedv1.ConditionStalled)
	if is != nil && (was == nil || was.Reason != is.Reason) {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Reconcile", "%s", summary([]string{is.Message}, maxNote))
	}
}

// failure drops outcomes that are no failures.
func failure(err error) error {
	if outcomeOf(err) == outcomeFailed {
		return err
	}
	return nil
}

// isPassing reports whether a failure is transient and not worth a status write: a conflict, or a server that is
// busy, restarting or unavailable.
func isPassing(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || isTerminating(err)
}

// ignoreTerminating ignores the failure to create something in a namespace that is being deleted: the owner is
// deleted, too.
func ignoreTerminating(err error) error {
	if isTerminating(err) {
		return nil
	}
	return err
}

func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
