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

// Recorder remembers why objects were reconciled. All its methods, and what they return, can be used by many goroutines at
// once. A nil *Recorder is one that is turned off: whatever it is asked to wrap is returned as it is, and there are no
// records.
type Recorder struct {
	options Options
	differ  diff.Differ
	kinds   sync.Map // schema.GroupVersionKind by reflect.Type
	lastID  atomic.Uint64
	tracer  tracer
	loops   loops
	// serving says that Start does.
	serving atomic.Bool
	// hasTransport is whether there is a transport that has to be told what a client has recorded.
	hasTransport atomic.Bool

	backlog backlog
	// telling is held by who logs and traces.
	telling sync.Mutex

	schemesMutex sync.Mutex
	schemes      []*runtime.Scheme

	// mutex protects the rest, and what belongs to controllers and to reconciles. It is held by those who settle the backlog
	// and by those who read, and by nobody who has something else to do.
	mutex       sync.Mutex
	lines       []line  // of the backlog, while they are settled
	untold      []*pass // that have ended, and are to be logged or traced
	store       *store
	echoes      *echoes
	controllers []*Controller
	began       time.Time
	// news is closed when there is a record; it is nil if nobody waits for one.
	news    chan struct{}
	dropped struct{ causes, changes, writes uint64 }
	// waitingBytes is about what the causes take that wait.
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

// Controller is what is recorded of one controller. A nil *Controller is one that is not recorded.
type Controller struct {
	recorder *Recorder
	name     string
	kind     schema.GroupVersionKind

	// seen counts the events of all watches and sources. Those of a Builder's watches are counted before predicates drop some.
	seen atomic.Uint64

	// The recorder's mutex protects the rest.
	waiting map[waitKey]*waiting
	// waits is for how many objects events wait, rather than timers and the like.
	waits  int
	forgot time.Time
	reads  map[schema.GroupKind][]string
	// enqueued counts the events that led to something, seenBefore is what was seen when the backlog was taken that is settled,
	// and filtered counts those that led to nothing.
	enqueued, seenBefore, filtered uint64
	// unlisted are the causes that records had no room for.
	unlisted map[causeKind]uint64
	totals   totals
}

// Controller begins to record a controller. The object is of the kind that is reconciled; it is nil if there is no such
// kind. Controllers of the same name share what is recorded.
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

// Reads says which fields of the objects of a kind the reconciler reads, such as "spec" and "status.readyReplicas" of
// Deployments, so that reconciles that nothing of these led to are recognised as no-ops. Without it, the reconciler is taken
// to read everything but the status of the objects that it reconciles.
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

// kindOf is the kind of an object. Typed objects from a cache do not say it themselves.
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

// publish adds a record that is not changed any more, and tells those who follow.
func (r *Recorder) publish(key objectKey, record *Record) {
	r.store.add(key, record)
	if r.news != nil {
		close(r.news)
		r.news = nil
		r.backlog.came()
	}
}

// adopt adds a controller that was made before its name was known.
func (r *Recorder) adopt(c *Controller, name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	c.name = name
	r.controllers = append(r.controllers, c)
}
