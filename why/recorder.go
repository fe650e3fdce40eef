// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/why/diff"
)

// Recorder records why objects were reconciled. All its methods, and the values they return, are safe for concurrent
// use. A nil *Recorder is turned off: it returns handlers, clients and reconcilers unwrapped, and has no records.
type Recorder struct {
	options Options
	differ  diff.Differ
	kinds   sync.Map // schema.GroupVersionKind by reflect.Type
	lastID  atomic.Uint64
	tracer  tracer
	loops   loops
	// serving is whether Start serves the records.
	serving atomic.Bool
	// hasTransport is whether there is a transport, which must know what a client has already
	// recorded.
	hasTransport atomic.Bool

	backlog backlog
	// telling is held by who logs and traces.
	telling sync.Mutex

	schemesMutex sync.Mutex
	schemes      []*runtime.Scheme

	// mutex protects the fields below, and the state of controllers and reconciles. Only goroutines
	// that settle the backlog or read records hold it, never a handler or a reconcile.
	mutex       sync.Mutex
	lines       []line  // of the backlog, while they are settled
	untold      []*pass // that have ended, and are to be logged or traced
	store       *store
	echoes      *echoes
	controllers []*Controller
	began       time.Time
	// news is closed when there is a record; it is nil if no reader waits for one.
	news    chan struct{}
	dropped struct{ causes, changes, writes uint64 }
	// waitingBytes is the approximate size of the waiting causes.
	waitingBytes int
}

// New returns a recorder. Metrics are registered if there is a Registerer, and New panics if that has some of the same name
// already, as Registerer.MustRegister does.
func New(o Options) *Recorder {
	o = o.withDefaults()
	r := &Recorder{
		options: o, store: newStore(o), echoes: newEchoes(o.MaxEchoes), began: o.Clock.Now(),
		differ: diff.Differ{MaxChanges: o.MaxChanges, MaxValue: o.MaxValue, MaxCompared: o.MaxCompared},
		tracer: newTracer(o.TracerProvider), schemes: []*runtime.Scheme{o.Scheme},
	}
	r.backlog.settle, r.backlog.maxEvents = r.settle, o.MaxUncompared
	if o.Registerer != nil {
		o.Registerer.MustRegister(&collector{recorder: r})
	}
	return r
}

// Controller records one controller. A nil *Controller records nothing.
type Controller struct {
	recorder *Recorder
	name     string
	kind     schema.GroupVersionKind

	// seen counts the events of all watches and sources. Events of a Builder's watches are counted
	// before predicates drop some.
	seen atomic.Uint64

	// The recorder's mutex protects the rest.
	waiting map[waitKey]*waiting
	// waits is for how many objects events wait, rather than timers and the like.
	waits  int
	forgot time.Time
	reads  map[schema.GroupKind][]string
	// enqueued counts the events that triggered a reconcile, seenBefore is the value of seen when
	// the current backlog was taken, and filtered counts the events that triggered none.
	enqueued, seenBefore, filtered uint64
	// unlisted are the causes that records had no room for.
	unlisted map[causeKind]uint64
	totals   totals
}

// Controller starts to record a controller. The object has the kind that is reconciled; it is nil if there is no such
// kind. Controllers of the same name share one recording.
func (r *Recorder) Controller(name string, object client.Object) *Controller {
	if r == nil {
		return nil
	}
	var kind schema.GroupVersionKind
	if object != nil {
		kind = r.kindOf(object)
	}
	return r.controller(name, kind)
}

func (r *Recorder) controller(name string, kind schema.GroupVersionKind) *Controller {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, c := range r.controllers {
		if c.name == name && c.kind == kind {
			return c
		}
	}
	c := &Controller{recorder: r, name: name, kind: kind, waiting: map[waitKey]*waiting{}, totals: newTotals()}
	r.controllers = append(r.controllers, c)
	return c
}

// Reads declares which fields of a kind the reconciler reads, such as "spec" and "status.readyReplicas" of
// Deployments. Reconciles without a change of these fields are recognized as no-ops. By default, the reconciler is
// assumed to read everything but the status of the objects that it reconciles.
func (c *Controller) Reads(object client.Object, paths ...string) *Controller {
	if c == nil {
		return nil
	}
	kind := c.recorder.kindOf(object).GroupKind()
	c.recorder.mutex.Lock()
	defer c.recorder.mutex.Unlock()
	if c.reads == nil {
		c.reads = map[schema.GroupKind][]string{}
	}
	c.reads[kind] = append(c.reads[kind], paths...)
	return c
}

// kindOf returns the kind of an object. Typed objects from a cache do not contain it.
func (r *Recorder) kindOf(object runtime.Object) schema.GroupVersionKind {
	if kind := object.GetObjectKind().GroupVersionKind(); kind.Kind != "" {
		return kind
	}
	goType := reflect.TypeOf(object)
	if known, ok := r.kinds.Load(goType); ok {
		return known.(schema.GroupVersionKind)
	}
	kind := schema.GroupVersionKind{Kind: goType.Elem().Name()}
	r.schemesMutex.Lock()
	defer r.schemesMutex.Unlock()
	for _, scheme := range r.schemes {
		if kinds, _, err := scheme.ObjectKinds(object); err == nil && len(kinds) > 0 {
			kind = kinds[0]
			break
		}
	}
	if _, isMetadata := object.(*metav1.PartialObjectMetadata); !isMetadata {
		r.kinds.Store(goType, kind)
	}
	return kind
}

// learnKinds adds the scheme of a manager.
func (r *Recorder) learnKinds(scheme *runtime.Scheme) {
	r.schemesMutex.Lock()
	defer r.schemesMutex.Unlock()
	if !slices.Contains(r.schemes, scheme) {
		r.schemes = append(r.schemes, scheme)
		r.kinds.Clear()
	}
}

func (r *Recorder) name(object client.Object) Object {
	kind := r.kindOf(object)
	return Object{
		Kind: kind.Kind, Group: kind.Group, Version: kind.Version,
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID()),
	}
}

// publish adds a complete record, and notifies followers.
func (r *Recorder) publish(key objectKey, record *Record) {
	r.store.add(key, record)
	if r.news != nil {
		close(r.news)
		r.news = nil
		r.backlog.came()
	}
}

// adopt adds a controller that was created before its name was known.
func (r *Recorder) adopt(c *Controller, name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	c.name = name
	r.controllers = append(r.controllers, c)
}
