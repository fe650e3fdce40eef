// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Builder builds a controller like controller-runtime's builder, with the same methods and options, and records it.
// It passes everything on to that builder, and wraps each handler and the reconciler.
type Builder struct {
	manager  ctrl.Manager
	recorder *Recorder
	inner    *builder.Builder

	name       string
	object     client.Object
	forOptions []builder.ForOption
	owns       []owned
	watches    []watched
	sources    []source.Source
	options    controller.Options
	controller *Controller
	err        error
}

type owned struct {
	object  client.Object
	options []builder.OwnsOption
}

type watched struct {
	object  client.Object
	handler handler.EventHandler
	options []builder.WatchesOption
}

// ControllerManagedBy returns controller-runtime's builder with a recorder. It wraps all watches and the reconciler.
// If the recorder is nil, the controller is the one that controller-runtime would build.
func ControllerManagedBy(m ctrl.Manager, r *Recorder) *Builder {
	b := &Builder{manager: m, recorder: r, inner: builder.ControllerManagedBy(m)}
	if r != nil {
		r.learnKinds(m.GetScheme())
		b.controller = &Controller{recorder: r, waiting: map[waitKey]*waiting{}, totals: newTotals()}
		// It comes first, so it sees all events that the predicates see.
		b.inner.WithEventFilter(seenCounter{b.controller})
	}
	return b
}

// Recording returns the recording of the controller. Use it to wrap handlers of raw sources, and for hints. It is nil
// if recording is off.
func (b *Builder) Recording() *Controller { return b.controller }

// For does the same as in controller-runtime's builder.
func (b *Builder) For(object client.Object, opts ...builder.ForOption) *Builder {
	if b.object != nil {
		b.err = errors.New("For(...) should only be called once, could not assign multiple objects for reconciliation")
		return b
	}
	b.object, b.forOptions = object, opts
	return b
}

// Owns does the same as in controller-runtime's builder.
func (b *Builder) Owns(object client.Object, opts ...builder.OwnsOption) *Builder {
	b.owns = append(b.owns, owned{object, opts})
	return b
}

// Watches does the same as in controller-runtime's builder.
func (b *Builder) Watches(object client.Object, h handler.EventHandler, opts ...builder.WatchesOption) *Builder {
	b.watches = append(b.watches, watched{object, h, opts})
	return b
}

// WatchesMetadata does the same as in controller-runtime's builder.
func (b *Builder) WatchesMetadata(object client.Object, h handler.EventHandler, opts ...builder.WatchesOption) *Builder {
	return b.Watches(object, h, append(opts, builder.OnlyMetadata)...)
}

// WatchesRawSource does the same as in controller-runtime's builder. To record the events of the source, wrap its
// handler: why.TypedHandler(b.Recording(), handler).
func (b *Builder) WatchesRawSource(s source.Source) *Builder {
	b.sources = append(b.sources, s)
	return b
}

// WithEventFilter does the same as in controller-runtime's builder.
func (b *Builder) WithEventFilter(p predicate.Predicate) *Builder {
	b.inner.WithEventFilter(p)
	return b
}

// WithOptions does the same as in controller-runtime's builder.
func (b *Builder) WithOptions(o controller.Options) *Builder {
	b.options = o
	return b
}

// WithLogConstructor does the same as in controller-runtime's builder.
func (b *Builder) WithLogConstructor(construct func(*reconcile.Request) logr.Logger) *Builder {
	b.options.LogConstructor = construct
	return b
}

// Named does the same as in controller-runtime's builder.
func (b *Builder) Named(name string) *Builder {
	b.name = name
	return b
}

// Complete does the same as in controller-runtime's builder.
func (b *Builder) Complete(r reconcile.Reconciler) error {
	_, err := b.Build(r)
	return err
}

// Build does the same as in controller-runtime's builder.
func (b *Builder) Build(r reconcile.Reconciler) (controller.Controller, error) {
	if b.err != nil {
		return nil, b.err
	}
	if r == nil {
		return nil, errors.New("must provide a non-nil Reconciler")
	}
	if b.recorder == nil {
		return b.buildPlain(r)
	}
	if err := b.prepare(); err != nil {
		return nil, err
	}
	if err := b.recorder.addTo(b.manager); err != nil {
		return nil, err
	}
	if b.options.Reconciler != nil {
		return nil, errors.New("reconciler was set via WithOptions() and via Build() or Complete()")
	}
	for _, w := range b.watches {
		counted := &typedHandler[client.Object, reconcile.Request]{controller: b.controller, inner: w.handler, counted: true}
		b.inner.Watches(w.object, counted, w.options...)
	}
	for _, s := range b.sources {
		b.inner.WatchesRawSource(Source(b.controller, s))
	}
	return b.inner.Named(b.name).WithOptions(b.options).Build(b.controller.Reconciler(r))
}

// buildPlain leaves everything to controller-runtime.
func (b *Builder) buildPlain(r reconcile.Reconciler) (controller.Controller, error) {
	if b.object != nil {
		b.inner.For(b.object, b.forOptions...)
	}
	for _, o := range b.owns {
		b.inner.Owns(o.object, o.options...)
	}
	for _, w := range b.watches {
		b.inner.Watches(w.object, w.handler, w.options...)
	}
	for _, s := range b.sources {
		b.inner.WatchesRawSource(s)
	}
	if b.name != "" {
		b.inner.Named(b.name)
	}
	return b.inner.WithOptions(b.options).Build(r)
}

// prepare turns For and Owns into watches, because controller-runtime would create their handlers where they cannot
// be wrapped.
func (b *Builder) prepare() error {
	if b.object == nil {
		if len(b.owns) > 0 {
			return errors.New("Owns() can only be used together with For()")
		}
		if b.name == "" {
			return errors.New("one of For() or Named() must be called")
		}
		b.recorder.adopt(b.controller, b.name)
		return nil
	}
	kind, err := apiutil.GVKForObject(b.object, b.manager.GetScheme())
	if err != nil {
		return err
	}
	if b.name == "" {
		b.name = strings.ToLower(kind.Kind)
	}
	b.controller.kind = kind
	b.recorder.adopt(b.controller, b.name)
	concurrency := b.manager.GetControllerOptions().GroupKindConcurrency[kind.GroupKind().String()]
	if b.options.MaxConcurrentReconciles == 0 && concurrency > 0 {
		b.options.MaxConcurrentReconciles = concurrency
	}
	if b.options.LogConstructor == nil {
		log := b.manager.GetLogger().WithValues("controller", b.name, "controllerGroup", kind.Group, "controllerKind", kind.Kind)
		b.options.LogConstructor = func(request *reconcile.Request) logr.Logger {
			if request == nil {
				return log
			}
			return log.WithValues(kind.Kind, klog.KRef(request.Namespace, request.Name), "namespace", request.Namespace, "name", request.Name)
		}
	}
	return b.translate()
}

func (b *Builder) translate() error {
	options, err := asWatches(b.forOptions)
	if err != nil {
		return fmt.Errorf("an option of For: %w", err)
	}
	all := []watched{{b.object, &handler.EnqueueRequestForObject{}, options}}
	for _, o := range b.owns {
		owner := []handler.OwnerOption{handler.OnlyControllerOwner()}
		var kept []builder.OwnsOption
		for _, option := range o.options {
			if option == builder.OwnsOption(builder.MatchEveryOwner) {
				owner = nil
			} else {
				kept = append(kept, option)
			}
		}
		options, err := asWatches(kept)
		if err != nil {
			return fmt.Errorf("an option of Owns: %w", err)
		}
		h := handler.EnqueueRequestForOwner(b.manager.GetScheme(), b.manager.GetRESTMapper(), b.object, owner...)
		all = append(all, watched{o.object, h, options})
	}
	b.watches = append(all, b.watches...)
	return nil
}

// asWatches turns options of For and Owns into the same ones of Watches. All that there are in controller-runtime can be
// used for each.
func asWatches[option any](options []option) ([]builder.WatchesOption, error) {
	var same []builder.WatchesOption
	for _, o := range options {
		watches, ok := any(o).(builder.WatchesOption)
		if !ok {
			return nil, fmt.Errorf("%T cannot be used with a recorder; use Watches, or wrap the handler and the reconciler separately", o)
		}
		same = append(same, watches)
	}
	return same, nil
}

// seenCounter counts the events of a controller before any predicate drops them.
type seenCounter struct{ controller *Controller }

func (s seenCounter) count() bool {
	s.controller.seen.Add(1)
	return true
}

// Create implements predicate.Predicate.
func (s seenCounter) Create(event.CreateEvent) bool { return s.count() }

// Update implements predicate.Predicate.
func (s seenCounter) Update(event.UpdateEvent) bool { return s.count() }

// Delete implements predicate.Predicate.
func (s seenCounter) Delete(event.DeleteEvent) bool { return s.count() }

// Generic implements predicate.Predicate.
func (s seenCounter) Generic(event.GenericEvent) bool { return s.count() }
