// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why answers the question that every operator author asks: why was this object reconciled?
//
// A work queue keeps only names, each of them once. When a reconciler is called, the events that triggered the call
// are lost. For any controller that is built with controller-runtime, this package records them: which object had the
// event, which fields changed and who changed them, how long the request waited, how many events were folded into one
// reconcile, and what the reconcile then wrote.
//
// # Using it
//
// One call is enough. It has the same form as controller-runtime's:
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
// The builder accepts the options of controller-runtime's builder, including For, Owns, Watches and WatchesMetadata.
// If a controller is put together in another way, wrap each handler and the reconciler:
//
//	c := recorder.Controller("web", &appsv1.Deployment{})
//	source.Kind(mgr.GetCache(), &corev1.Pod{}, why.TypedHandler(c, handler))
//	reconciler = c.Reconciler(reconciler)
//
// Caches that drop managed fields also drop who changed an object. KeepWriters is a transform that keeps the writers
// and little more. Writes are recorded if their client is wrapped by Recorder.Client or its rest.Config has
// Recorder.Transport, and if the reconciler passes on its context.
//
// A nil *Recorder turns recording off: nothing is wrapped, and there is no cost.
//
// # What it finds
//
//   - A reconcile is a no-op if it changed nothing, did not fail, and none of its causes was relevant. These are not
//     relevant: the initial list, resyncs, echoes of its own writes, events that the previous reconcile had already,
//     and updates of fields that the reconciler does not read. Unless Controller.Reads names the fields that it
//     reads, these are the status of the reconciled object. All other causes are relevant. Causes that a record has
//     no room for may be.
//   - It is self-inflicted if all its causes are echoes of writes by earlier reconciles of the same object. An event is
//     the echo of a write if it has the resource version from the response, arrived after the request was sent, and has
//     the same field manager, as far as these are known.
//   - It is part of a loop if at least Options.LoopLength reconciles in a row, including this one, are
//     self-inflicted. It is also part of a loop if a field of an object that triggered it has changed back to its
//     previous value Options.LoopFlips times within Options.LoopWindow. The causes of the first two reconciles of an
//     object do not count. If the same change happens again, another writer has reverted it in between. The finding
//     names the writers of the last two changes. If a single writer changes a status back and forth, this is the
//     consequence of something else, and not a loop.
//   - Amplification is the number of reconciles and writes per change by a user. Such a change is the creation of a
//     reconciled object, a change of its generation (of its content, if its kind has none), or the start of its
//     deletion. It can also be an update of another object, beyond its status, by a writer that is neither part of
//     Kubernetes nor a field manager of the reconciles. In either case, no reconcile of this recorder wrote it.
//
// # What it costs
//
// Options bounds the memory. Summary.Dropped counts what was dropped. Nothing waits for readers of records: a reader
// that is too slow gets the number of records that it missed.
//
// Handlers, reconciles and clients only append to a backlog. The analysis runs in the background, for many events at
// once: when there are enough events, a second after the first one, or before a read, whichever comes first. It
// compares the objects of events that triggered a reconcile, and then releases them. They must not be modified before
// that, as is true for all objects from a cache. For other objects, see Options.MaxUncompared. With a log at level 1,
// or with spans, the analysis is immediate, and each record costs more.
//
// # Limits
//
// The writers of a change come from managed fields. These have a resolution of one second. They do not contain who
// deleted an object, or who removed a part of it by a request other than an apply. Unknown writers are not named. The
// data and annotations of Secrets are never recorded. Other content of objects is, shortened: protect records like
// the objects.
package why
