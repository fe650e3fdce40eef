// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why answers the question that every operator author asks: why was this object reconciled?
//
// A work queue keeps only names, each of them once, so by the time a reconciler is called nobody knows any more which events
// led to it. This package writes that down, for any controller that is built with controller-runtime: which object's event
// it was, which fields changed and who changed them, how long it waited, how many events were folded into one reconcile,
// and what the reconcile then wrote.
//
// # Using it
//
// One call does it all, and reads as that of controller-runtime:
//
//	recorder := why.New(why.Options{})
//	mgr, err := ctrl.NewManager(config, ctrl.Options{NewClient: recorder.NewClient})
//	...
//	err = why.ControllerManagedBy(mgr, recorder).
//		For(&appsv1.Deployment{}).
//		Owns(&corev1.Pod{}).
//		Complete(reconciler)
//	...
//	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return recorder.Serve(ctx, "127.0.0.1:8082") }))
//
// The builder takes the options of controller-runtime's, For, Owns, Watches and WatchesMetadata included. Where a controller
// is put together in another way, wrap each handler and the reconciler:
//
//	c := recorder.Controller("web", &appsv1.Deployment{})
//	source.Kind(mgr.GetCache(), &corev1.Pod{}, why.TypedHandler(c, handler))
//	reconciler = c.Reconciler(reconciler)
//
// Caches that drop managed fields drop who changed something with them; KeepWriters is a transform that keeps that and
// little more. Writes are known of clients that are wrapped by Recorder.Client, and of others if Recorder.Transport is in
// their rest.Config, as long as the reconciler uses the context that it was given.
//
// A nil *Recorder turns all of this off: what it wraps stays as it is, so that off costs nothing.
//
// # What it finds
//
//   - A reconcile is a no-op if it changed nothing, did not fail, and none of its causes was news. The first list, resyncs,
//     the echoes of its own writes and events that the reconcile before had already are no news, and neither are updates of
//     fields that the reconciler does not read: the status of the reconciled object, or all but what Controller.Reads names.
//     Everything else is, and so may be causes that a record has no room for.
//   - It is self-inflicted if all its causes are echoes of writes that earlier reconciles of the same object made. An event
//     is the echo of a write if it has the version that the write was answered with, came after it was sent, and is by the
//     manager that it was sent by, as far as these are known.
//   - It is part of a loop if it is the Options.LoopLength-th or a later one in a row that is self-inflicted, or if a field of
//     an object that led to it has changed Options.LoopFlips times within Options.LoopWindow, each time back to what it
//     was before; what led to the first two reconciles of an object does not count. The same change again says that somebody
//     has undone it in between. The writers of the last two changes are named. What one and the same writer does to a status
//     is the consequence of something else, and no loop.
//   - Amplification is how many reconciles and writes there are for each change by a user. That is the creation of a
//     reconciled object, a change of its generation (of its content, if its kind has none) or the begin of its deletion; and
//     an update of another object, beyond its status, by somebody who is neither a part of Kubernetes nor a manager that
//     reconciles write as. In either case, no reconcile of this recorder wrote it.
//
// # What it costs
//
// Memory is bounded by Options, whatever happens; what there was no room for is counted in Summary.Dropped. Nobody waits for
// those who read records: a reader that is too slow is told how many it has missed.
//
// Handlers, reconciles and clients only write down what happens. What it means is found out in the background, for many events
// at once: when there are enough of them, a second after the first, and before anybody reads, whichever comes first. Objects are
// compared then, if their event has led to a reconcile, and are not kept longer than that. They must not be changed in between,
// which is true of whatever comes from a cache; Options.MaxUncompared says what to do about others. With a log at level 1, or with
// spans, nothing is put off, and each record costs more.
//
// # Limits
//
// Who changed something is as good as managed fields are: they have no fractions of seconds, and say nothing of who deleted
// an object, or removed a part of it other than by applying it without. Nobody is named where that is not known. The data
// and annotations of Secrets are never recorded, but what else is in objects is, shortened; treat records as what they are
// made of.
package why
