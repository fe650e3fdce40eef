// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/why"
)

const (
	// maxRequest and maxAnswer are how much of a body is decoded: more than the API server accepts, and a list of some
	// thousand objects.
	maxRequest = 4 << 20
	maxAnswer  = 32 << 20
	// maxQueued is how many observations wait at most.
	maxQueued = 16 << 10
	// keptWrites is how many writes are remembered, to tell deliveries that they are echoes.
	keptWrites = 8 << 10
)

// observer makes events of what passed. It works in one goroutine, beside the traffic: what it has no room for is counted.
type observer struct {
	stream *Stream
	budget budget
	queue  chan observation
	lost   atomic.Uint64

	closeOnce sync.Once
	quit      chan struct{}
	done      chan struct{}

	// The rest belongs to the goroutine.
	memory *memory
	// resources are those of kinds, and kinds the other way round, as far as objects have passed.
	resources map[schema.GroupKind]string
	kinds     map[schema.GroupResource]string
	writes    map[writtenVersion]uint64
	recent    []writtenVersion // the keys of writes, oldest first, from next on
	next      int
}

// observation is something that passed. One of its parts is set.
type observation struct {
	event    *Event
	exchange *exchange
	watching *watching
	flushed  chan struct{}

	// These belong to watching.
	data  []byte
	about Delivery
	at    time.Time
}

// writtenVersion names a version of an object that the operator made.
type writtenVersion struct{ uid, resourceVersion string }

func newObserver(stream *Stream, pending, remembered int64) *observer {
	o := &observer{
		stream: stream, budget: budget{most: pending}, queue: make(chan observation, maxQueued), quit: make(chan struct{}), done: make(chan struct{}),
		memory: newMemory(remembered), resources: map[schema.GroupKind]string{}, kinds: map[schema.GroupResource]string{}, writes: map[writtenVersion]uint64{},
	}
	go o.run()
	return o
}

func (o *observer) newCapture(most int) *capture { return &capture{budget: &o.budget, most: most} }

// emit adds an event as it is.
func (o *observer) emit(e Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	o.put(observation{event: &e})
}

func (o *observer) observeExchange(x *exchange) {
	if !o.put(observation{exchange: x}) {
		x.sent.release()
		x.got.release()
	}
}

func (o *observer) observeFrame(w *watching, event []byte, about Delivery) {
	seen := observation{watching: w, about: about, at: time.Now()}
	if o.budget.take(len(event)) {
		seen.data = append([]byte(nil), event...)
	} else {
		seen.about.Undecoded = behind
	}
	if !o.put(seen) {
		o.budget.give(len(seen.data))
	}
}

// put never blocks.
func (o *observer) put(seen observation) bool {
	select {
	case o.queue <- seen:
		return true
	default:
		o.lost.Add(1)
		return false
	}
}

func (o *observer) flush(ctx context.Context) error {
	flushed := make(chan struct{})
	select {
	case o.queue <- observation{flushed: flushed}:
	case <-o.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-flushed:
	case <-o.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// close returns when all that was put is in the stream.
func (o *observer) close() {
	o.closeOnce.Do(func() { close(o.quit) })
	<-o.done
	o.stream.close()
}

func (o *observer) run() {
	defer close(o.done)
	for {
		select {
		case seen := <-o.queue:
			o.take(seen)
		case <-o.quit:
			for {
				select {
				case seen := <-o.queue:
					o.take(seen)
				default:
					return
				}
			}
		}
	}
}

func (o *observer) take(seen observation) {
	if lost := o.lost.Swap(0); lost > 0 {
		o.stream.add(Event{At: time.Now(), Lost: &Lost{Events: lost, Reason: "the lens had too much to do"}})
	}
	switch {
	case seen.event != nil:
		o.stream.add(*seen.event)
	case seen.exchange != nil:
		o.stream.add(Event{At: seen.exchange.began, Request: o.request(seen.exchange)})
	case seen.watching != nil:
		o.stream.add(Event{At: seen.at, Delivery: o.delivery(&seen)})
		o.budget.give(len(seen.data))
	case seen.flushed != nil:
		close(seen.flushed)
	}
}

// request says what a request was and did.
func (o *observer) request(x *exchange) *Request {
	r := &x.Request
	defer x.sent.release()
	defer x.got.release()
	_, r.BytesIn, _ = x.sent.all()
	if x.got == nil {
		return r
	}
	data, size, short := x.got.all()
	r.BytesOut = size
	switch {
	case r.Path != "" && r.Status < http.StatusBadRequest, isConversation(r.Resource.Subresource), len(data) == 0 && short == "":
		return r
	case short != "":
		r.Undecoded = short
		return r
	}
	as, _ := encodingOf(x.contentType)
	plain, err := inflate(data, x.compression)
	if err != nil {
		r.Undecoded = err.Error()
		return r
	}
	object, err := decode(plain, as)
	if err != nil {
		if r.Status >= http.StatusBadRequest {
			r.Message = firstLine(string(plain))
		} else {
			r.Undecoded = err.Error()
		}
		return r
	}
	o.understand(x, object, plain, as)
	return r
}

func firstLine(text string) string {
	const most = 200
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line[:min(len(line), most)]
}

// understand reads the object of an answer.
func (o *observer) understand(x *exchange, object *unstructured.Unstructured, data []byte, as encoding) {
	r := &x.Request
	kind := object.GroupVersionKind()
	switch {
	case kind.Kind == "Status" && kind.Group == "":
		r.Reason, _, _ = unstructured.NestedString(object.Object, "reason")
		r.Message, _, _ = unstructured.NestedString(object.Object, "message")
		o.deleted(r, object)
		return
	case kind.Kind == "Table" && kind.Group == metav1.GroupName, isReview(r.Resource):
		return
	case r.Verb == "list":
		o.listed(r, object)
		return
	}
	if object.GetName() == "" {
		return // an answer that is no object, such as the one to an eviction
	}
	r.Object = nameOf(object)
	r.Resource.Name = object.GetName() // of an object whose name the server has generated
	key := keyOf(r.Resource)
	before := o.memory.find(key)
	o.name(r.Object, r.Resource)
	if r.Resource.Subresource == "scale" {
		return // its object is not the one that is stored
	}
	if r.IsWrite() {
		r.Change = changed(r, before.latest, object, x.sentVersion())
		r.Implies = o.implied(r, before.latest, object)
		if r.Change == nil || !r.Change.None {
			o.wrote(writtenVersion{r.Object.UID, r.Object.ResourceVersion}, r.ID)
		}
	}
	if !r.DryRun && kind.Kind != partialMetadata {
		o.memory.learn(key, versionOf(object, bytes.Clone(data), as, false), false)
	}
}

// partialMetadata is the kind of objects of which only the metadata was asked for. They are not remembered: what they lack
// would look like a change.
const partialMetadata = "PartialObjectMetadata"

// name learns which resource a kind has, and tells it of objects that do not say their kind.
func (o *observer) name(object *Object, resource Resource) {
	place := schema.GroupResource{Group: resource.Group, Resource: resource.Resource}
	if object.Kind != partialMetadata {
		if resource.Subresource == "" {
			kind := schema.GroupKind{Group: object.Group, Kind: object.Kind}
			o.resources[kind], o.kinds[place] = resource.Resource, kind.Kind
		}
		return
	}
	object.Group, object.Version = resource.Group, resource.Version
	if kind, ok := o.kinds[place]; ok {
		object.Kind = kind
	}
}

func keyOf(r Resource) objectKey { return objectKey{r.Group, r.Resource, r.Namespace, r.Name} }

// deleted is the answer to a deletion that leaves nothing.
func (o *observer) deleted(r *Request, answer *unstructured.Unstructured) {
	if r.Verb != "delete" || r.Status >= http.StatusBadRequest || r.DryRun {
		return
	}
	uid, _, _ := unstructured.NestedString(answer.Object, "details", "uid")
	if before := o.memory.find(keyOf(r.Resource)).latest; before != nil && before.uid == uid {
		if object := before.object(); object != nil {
			r.Object = nameOf(object)
		}
	}
	o.wrote(writtenVersion{uid, ""}, r.ID)
}

func (o *observer) listed(r *Request, list *unstructured.Unstructured) {
	objects, ok := items(list)
	if !ok {
		return
	}
	r.Items = len(objects)
	kind := strings.TrimSuffix(list.GetKind(), "List")
	for _, object := range objects {
		if object.GetKind() == "" {
			// The items of a list in JSON do not repeat what they are.
			object.SetAPIVersion(list.GetAPIVersion())
			object.SetKind(kind)
		}
		resource := r.Resource
		resource.Namespace, resource.Name = object.GetNamespace(), object.GetName()
		if data, err := json.Marshal(object.Object); err == nil && object.GetKind() != partialMetadata {
			o.memory.learn(keyOf(resource), versionOf(object, data, encodedJSON, false), false)
		}
	}
}

// changed says what a write changed. Without a version from before, only a write that says itself what it was based on is
// known to have changed nothing.
func changed(r *Request, before *version, now *unstructured.Unstructured, basedOn string) *Change {
	switch {
	case r.Verb == "create" && r.Resource.Subresource == "", r.Verb == "delete":
		return nil
	case before != nil && before.uid == string(now.GetUID()):
		c := compare(before, now)
		c.None = before.resourceVersion == now.GetResourceVersion()
		return c
	case basedOn != "" && basedOn == now.GetResourceVersion():
		return &Change{From: basedOn, None: true}
	}
	return nil
}

func compare(before *version, now *unstructured.Unstructured) *Change {
	c := &Change{From: before.resourceVersion}
	if c.From == now.GetResourceVersion() {
		return c
	}
	if old := before.object(); old != nil {
		c.Fields, c.By = why.Compare(old, now)
	}
	return c
}

// sentVersion is the resource version in the body of an update.
func (x *exchange) sentVersion() string {
	if x.Request.Verb != "update" {
		return ""
	}
	if object := x.decodeSent(); object != nil {
		return object.GetResourceVersion()
	}
	return ""
}

// decodeSent reads the object in the body of a write, nil if there is none.
func (x *exchange) decodeSent() *unstructured.Unstructured {
	data, _, short := x.sent.all()
	if len(data) == 0 || short != "" {
		return nil
	}
	as, mediaType := encodingOf(x.requestType)
	if mediaType == "application/json-patch+json" {
		return nil
	}
	object, err := decode(data, as)
	if err != nil {
		return nil
	}
	return object
}

func (o *observer) wrote(version writtenVersion, request uint64) {
	if len(o.recent) < keptWrites {
		o.recent = append(o.recent, version)
	} else {
		delete(o.writes, o.recent[o.next])
		o.recent[o.next] = version
		o.next = (o.next + 1) % keptWrites
	}
	o.writes[version] = request
}

// delivery says what an event of a watch tells the operator.
func (o *observer) delivery(seen *observation) *Delivery {
	w, d := seen.watching, &seen.about
	d.Watch, d.Resource, d.Initial = w.id, w.resource, w.initial
	if d.Undecoded != "" {
		return d
	}
	event, err := decodeEvent(seen.data, w.as)
	d.Type = event.Type
	if err != nil {
		d.Undecoded = err.Error()
		return d
	}
	object := event.Object
	if event.Type == "BOOKMARK" {
		if object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			w.initial = false
		}
		d.Initial = false
		return d
	}
	if object.GetName() == "" {
		return d
	}
	d.Object = nameOf(object)
	o.name(d.Object, w.resource)
	resource := w.resource
	resource.Namespace, resource.Name = object.GetNamespace(), object.GetName()
	key := keyOf(resource)
	before := o.memory.find(key)
	if before.delivered != nil && before.delivered.uid == d.Object.UID && object.GetKind() != partialMetadata {
		d.Change = compare(before.delivered, object)
		d.Change.None = len(d.Change.Fields) == 0
	}
	d.Write = o.writes[writtenVersion{d.Object.UID, d.Object.ResourceVersion}]
	if event.Type == "DELETED" {
		if d.Write == 0 {
			d.Write = o.writes[writtenVersion{uid: d.Object.UID}]
		}
		o.memory.forget(key)
		return d
	}
	if object.GetKind() != partialMetadata {
		o.memory.learn(key, versionOf(object, seen.data, w.as, true), true)
	}
	return d
}
