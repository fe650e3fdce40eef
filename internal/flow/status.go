// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MinorInterval is how often the status is written as long as the verdict stays the same and only numbers and messages
// change. A rollout of many pods changes them with every single pod.
const MinorInterval = 5 * time.Second

// writeStatus writes the status if it differs. If the difference is a minor one and the last write was not long ago,
// it returns after how long to come back instead.
func (r *Reconciler[T]) writeStatus(ctx context.Context, before, after T) (later time.Duration, err error) {
	difference, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return 0, fmt.Errorf("comparing the status: %w", err)
	}
	if string(difference) == "{}" {
		return 0, nil
	}
	key := client.ObjectKeyFromObject(after)
	now := r.Clock.Now()
	was, is := r.View(before), r.View(after)
	if !r.Paced && *was.ObservedGeneration == *is.ObservedGeneration && sameVerdict(*was.Conditions, *is.Conditions) {
		if wait := r.memory.writtenAt(key).Add(MinorInterval).Sub(now); wait > 0 {
			return wait, nil
		}
	}
	patch, err := forObject(after, difference)
	if err != nil {
		return 0, err
	}
	if err := r.patchStatus(ctx, after, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		return 0, fmt.Errorf("writing the status: %w", err)
	}
	r.memory.wrote(after, now)
	r.first.done(key)
	return 0, nil
}

// rememberVerdict keeps the verdict of kinds that hold, for restoreVerdict.
func (r *Reconciler[T]) rememberVerdict(object T) {
	if r.Paced {
		r.memory.judged(object, *r.View(object).Conditions)
	}
}

// restoreVerdict corrects the verdict if another writer has changed it while the rest of the status is held.
func (r *Reconciler[T]) restoreVerdict(ctx context.Context, before T) error {
	last, was := r.memory.verdictOf(before), r.View(before)
	if last == nil || *was.ObservedGeneration == before.GetGeneration() && sameVerdict(*was.Conditions, last) {
		return nil
	}
	after := before.DeepCopyObject().(T)
	*r.View(after).ObservedGeneration, *r.View(after).Conditions = before.GetGeneration(), last
	_, err := r.writeStatus(ctx, before, after)
	return err
}

// patchStatus sends a patch of the status. Its watch event is not an edit, even if it arrives before the response.
func (r *Reconciler[T]) patchStatus(ctx context.Context, object T, patch client.Patch) error {
	var answer client.Object
	done := r.own.begin(object, client.ObjectKeyFromObject(object))
	defer func() { done(answer) }()
	if err := r.Client.Status().Patch(ctx, object, patch, client.FieldOwner(r.FieldOwner())); err != nil {
		return err
	}
	answer = object
	return nil
}

// forObject returns a patch that the server refuses if the object was deleted and another one has its name.
func forObject(object client.Object, difference []byte) (client.Patch, error) {
	var content map[string]any
	if err := json.Unmarshal(difference, &content); err != nil {
		return nil, err
	}
	content["metadata"] = map[string]any{"uid": object.GetUID()}
	data, err := json.Marshal(content)
	return client.RawPatch(types.MergePatchType, data), err
}

// memory is the reconciler's state about objects. If it is lost, a status may be written a little early, and a
// measurement is missing.
type memory struct {
	mutex   sync.Mutex
	objects map[types.NamespacedName]*remembered
}

type remembered struct {
	uid     types.UID
	written time.Time
	// generation is the one that was last seen, since is when, and measured whether it has become ready.
	generation int64
	since      time.Time
	measured   bool
	// verdict holds the conditions of the last pass that was not held, of the object and the generation that it was about.
	verdict           []metav1.Condition
	verdictUID        types.UID
	verdictGeneration int64
	// lookedUID and lookedGeneration tell what the last pass was about, and obsolete whether it has left children that are not
	// part of it.
	lookedUID        types.UID
	lookedGeneration int64
	obsolete         bool
}

// looked is called after a pass.
func (m *memory) looked(object client.Object, obsolete bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(client.ObjectKeyFromObject(object))
	known.lookedUID, known.lookedGeneration, known.obsolete = object.GetUID(), object.GetGeneration(), obsolete
}

// mayHaveObsolete returns what the last pass has left. If this process has made none for this spec, it returns otherwise.
func (m *memory) mayHaveObsolete(object client.Object, otherwise bool) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(client.ObjectKeyFromObject(object))
	if known.lookedUID != object.GetUID() || known.lookedGeneration != object.GetGeneration() {
		return otherwise
	}
	return known.obsolete
}

func (m *memory) judged(object client.Object, conditions []metav1.Condition) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(client.ObjectKeyFromObject(object))
	known.verdict, known.verdictUID, known.verdictGeneration = slices.Clone(conditions), object.GetUID(), object.GetGeneration()
}

// verdictOf returns nil if there is none yet.
func (m *memory) verdictOf(object client.Object) []metav1.Condition {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(client.ObjectKeyFromObject(object))
	if known.verdictUID != object.GetUID() || known.verdictGeneration != object.GetGeneration() {
		return nil
	}
	return slices.Clone(known.verdict)
}

func (m *memory) of(key types.NamespacedName) *remembered {
	if m.objects == nil {
		m.objects = map[types.NamespacedName]*remembered{}
	}
	object, ok := m.objects[key]
	if !ok {
		object = &remembered{}
		m.objects[key] = object
	}
	return object
}

// forget returns the UID of the object, if it was ever written.
func (m *memory) forget(key types.NamespacedName) (uid types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if object, ok := m.objects[key]; ok {
		uid = object.uid
	}
	delete(m.objects, key)
	return uid
}

func (m *memory) wrote(object client.Object, now time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(client.ObjectKeyFromObject(object))
	known.uid, known.written = object.GetUID(), now
}

func (m *memory) writtenAt(key types.NamespacedName) time.Time {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.of(key).written
}

// seen records when a generation was first seen. A generation from before this process is not measured, because its
// age is unknown.
func (m *memory) seen(object client.Object, now time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(client.ObjectKeyFromObject(object))
	if known.generation == object.GetGeneration() {
		return
	}
	first := known.generation == 0
	known.generation, known.since, known.measured = object.GetGeneration(), now, false
	if first {
		known.since = object.GetCreationTimestamp().Time
		known.measured = object.GetGeneration() != 1 || now.Sub(known.since) > time.Minute
	}
}

func (m *memory) ready(object client.Object, now time.Time, kind string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(client.ObjectKeyFromObject(object))
	if !known.measured {
		known.measured = true
		timeToReady.WithLabelValues(kind).Observe(max(0, now.Sub(known.since).Seconds()))
	}
}
