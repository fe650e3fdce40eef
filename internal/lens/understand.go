// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/why"
)

// request describes a request and its effect.
func (o *observer) request(x *exchange) *Request {
	r := &x.Request
	defer x.sent.release()
	defer x.got.release()
	_, r.BytesIn, _ = x.sent.all()
	x.readDryRun() // a body of unknown length is complete only now
	if r.Refused() && r.Verb == "create" && r.Resource.Name == "" && !isReview(r.Resource) {
		if object := x.decodeSent(); object != nil {
			r.Resource.Name = object.GetName() // the answer has none
		}
	}
	if x.got == nil {
		return r
	}
	data, size, short := x.got.all()
	r.BytesOut = size
	if isConversation(r.Resource.Subresource) {
		r.readRefusal(data, x)
		return r
	}
	switch {
	case !r.answersObject(), size == 0:
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
			r.Message = message(r, firstLine(string(plain)), nil)
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
func (o *observer) understand(x *exchange, decoded runtime.Object, data []byte, as encoding) {
	r := &x.Request
	kind := decoded.GetObjectKind().GroupVersionKind()
	switch {
	case kind.Kind == "Status" && kind.Group == "":
		answer := asUnstructured(decoded)
		r.Reason, _, _ = unstructured.NestedString(answer.Object, "reason")
		text, _, _ := unstructured.NestedString(answer.Object, "message")
		causes, _, _ := unstructured.NestedSlice(answer.Object, "details", "causes")
		r.Message = message(r, text, causes)
		o.deleted(r, answer)
		o.evicted(x)
		o.refusedBody(x)
		return
	case kind.Kind == "Table" && kind.Group == metav1.GroupName:
		if rows, ok := asUnstructured(decoded).Object["rows"].([]any); ok && r.Verb == "list" {
			r.Items = len(rows)
		}
		return
	case isReview(r.Resource):
		r.Implies = append(r.Implies, toldAllowed(r.Resource, asUnstructured(decoded))...)
		return
	case r.Verb == "list":
		o.listed(x, asUnstructured(decoded))
		return
	case r.Verb == "deletecollection":
		o.deletedAll(r, asUnstructured(decoded))
		return
	}
	object, ok := decoded.(client.Object)
	if !ok || object.GetName() == "" {
		return // an answer that is no object
	}
	r.Object = nameOf(object)
	r.Resource.Name = object.GetName() // of an object with a generated name
	key := keyOf(r.Resource)
	before := o.memory.find(key)
	o.name(r.Object, r.Resource)
	if r.Resource.Subresource == "scale" {
		o.scaled(x, object, before)
		return
	}
	made := versionOf(object, bytes.Clone(data), as, false, x.began)
	if r.DryRun && r.asksToWrite() {
		r.Implies = append(r.Implies, o.implied(r, before.latest(), object)...)
	}
	if r.IsWrite() {
		old, unchanged := before.before(made, x.began)
		r.Finalized = r.Verb != "create" && r.Verb != "delete" && hasEnded(r.Resource, object)
		r.Change = changed(r, old, unchanged, object, x.sentVersion())
		r.Implies = append(r.Implies, o.implied(r, old, object)...)
		for _, version := range r.Made() {
			isEarlier := unchanged || version.ResourceVersion == deletionBegins && old.isDeleting()
			if version.ResourceVersion == "" || !isEarlier {
				o.wrote(version, r)
			}
		}
	}
	if !r.DryRun && !r.Finalized && kind.Kind != partialMetadata {
		o.memory.learn(key, made, 0)
	}
}

// scaled is the answer to a request for the scale of an object. A Scale has the UID and the version of the object.
func (o *observer) scaled(x *exchange, scale client.Object, before remembered) {
	r := &x.Request
	if kind, ok := o.kinds[schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}]; ok {
		r.Object.Group, r.Object.Version, r.Object.Kind = r.Resource.Group, r.Resource.Version, kind
	}
	if known := before.latest(); known != nil && known.uid == r.Object.UID {
		if object := known.object(); object != nil {
			r.Object.Owners = nameOf(object).Owners
		}
	}
	if !r.IsWrite() {
		return
	}
	_, unchanged := before.before(versionOf(scale, nil, encodedJSON, false, x.began), x.began)
	r.Change = changed(r, nil, unchanged, scale, x.sentVersion())
	for _, version := range r.Made() {
		o.wrote(version, r)
	}
}

// refusedBody finds the rights that a refused write needs for its body, one of which its sender lacks.
func (o *observer) refusedBody(x *exchange) {
	r := &x.Request
	if r.lacksCreate() {
		r.Implies = append(r.Implies, Implied{Verb: "create", Resource: bare(r.Resource), Because: fmt.Sprintf("this %s would have created the object", r.Verb)})
		return
	}
	if !r.asksToWrite() || !r.lacksImplied() {
		return
	}
	sent := x.decodeSent()
	if sent == nil || sent.GetKind() == "" {
		return // a patch, which does not contain the object
	}
	sent.SetNamespace(r.Resource.Namespace)
	before := o.memory.find(keyOf(r.Resource))
	old := before.latest()
	if old != nil && sent.GetUID() == "" {
		sent.SetUID(types.UID(old.uid))
	}
	r.Implies = append(r.Implies, o.implied(r, old, sent)...)
}

// withoutReason is how API servers up to version 1.30 refuse a write that would create its object.
var withoutReason = regexp.MustCompile(`^\S+ "[^"]+" is forbidden: *$`)

// lacksCreate reports whether an apply or update was refused because its sender may not create the object, which does not exist. The
// right to send it was there.
func (r *Request) lacksCreate() bool {
	return (r.Verb == "apply" || r.Verb == "update") && r.Status == http.StatusForbidden && !IsDenial(r.Message) &&
		(strings.Contains(r.Message, fmt.Sprintf(" cannot create resource %q ", r.Resource.Resource)) || withoutReason.MatchString(r.Message))
}

// partialMetadata is the kind of objects that were requested without spec and status.
const partialMetadata = "PartialObjectMetadata"

// name learns the resource of a kind, and sets the kind of objects that lack it.
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
	} else if place == (schema.GroupResource{Resource: "secrets"}) {
		object.Kind = "Secret" // by which values are hidden
	}
}

func keyOf(r Resource) objectKey { return objectKey{r.Group, r.Resource, r.Namespace, r.Name} }

// listed remembers the objects of a list. The objects of a list that fills a cache count as
// delivered.
func (o *observer) listed(x *exchange, list *unstructured.Unstructured) {
	r := &x.Request
	objects, ok := items(list)
	if !ok {
		return
	}
	r.Items = len(objects)
	kind, delivered, undecided := strings.TrimSuffix(list.GetKind(), "List"), fillsCache(r), mayFillCache(r)
	if kind != "" {
		o.name(&Object{Group: list.GroupVersionKind().Group, Kind: kind}, r.Resource)
	}
	watch := uint64(0)
	if delivered {
		watch = r.ID
		o.lists.remove(selectionOf(r)) // the watch follows this list
	}
	var names []*Object
	for _, object := range objects {
		if object.GetKind() == "" {
			// The items of a list in JSON have no kind.
			object.SetAPIVersion(list.GetAPIVersion())
			object.SetKind(kind)
		}
		if delivered {
			d := &Delivery{Watch: r.ID, Resource: r.Resource, Type: "ADDED", Initial: true}
			o.describe(d, object)
			x.delivered = append(x.delivered, d)
			o.shown.add(Version{d.Object.UID, d.Object.ResourceVersion}, r.ID)
		}
		if undecided {
			name := nameOf(object)
			o.name(name, r.Resource)
			names = append(names, name)
		}
		resource := r.Resource
		resource.Namespace, resource.Name = object.GetNamespace(), object.GetName()
		if data, err := json.Marshal(object.Object); err == nil {
			o.memory.learn(keyOf(resource).holding(object), versionOf(object, data, encodedJSON, false, x.began), watch)
		}
	}
	if undecided {
		at := x.began.Add(r.Duration)
		o.lists.add(&listed{selectionOf(r), r.ID, r.Resource, list.GetResourceVersion(), at, kind == partialMetadata, names}, r.Query.Continue)
	}
}

// changed returns what a write changed. Without a previous version, a write is known to be a
// no-op only if it names the version that it was based on.
func changed(r *Request, before *version, unchanged bool, now client.Object, basedOn string) *Change {
	switch {
	case r.Verb == "create" && r.Resource.Subresource == "", r.Status == http.StatusCreated, r.Verb == "delete":
		return nil
	case r.Finalized:
		return nil // the answer has the version of before
	case unchanged, basedOn != "" && basedOn == now.GetResourceVersion():
		return &Change{From: now.GetResourceVersion(), None: true}
	case before == nil || before.resourceVersion == now.GetResourceVersion():
		return nil
	case kindOf(now) != partialMetadata && before.apiVersion != now.GetObjectKind().GroupVersionKind().Version:
		return nil // a conversion would look like a change
	}
	c := compare(before, now, r.Object)
	others := len(c.By) > 0 && r.FieldManager != "" && !slices.ContainsFunc(c.By, func(w why.Writer) bool { return w.Manager == r.FieldManager })
	if old := before.object(); others && old != nil && c.Changed <= len(c.Fields) && !mayHaveChanged(r, old, now, c.Fields) {
		// The version comes from another writer that wrote during this request, which had nothing left to change.
		return &Change{From: now.GetResourceVersion(), None: true}
	}
	return c
}

// compare returns how a version of an object differs from an earlier one. If both are metadata alone, the name has its kind.
func compare(before *version, now client.Object, name *Object) *Change {
	c := &Change{From: before.resourceVersion}
	if c.From == now.GetResourceVersion() {
		return c
	}
	old := before.object()
	if old == nil {
		return c
	}
	if kindOf(now) == partialMetadata {
		kind := old.GetObjectKind().GroupVersionKind()
		if kind.Kind == partialMetadata {
			kind = schema.GroupVersionKind{Group: name.Group, Version: name.Version, Kind: name.Kind}
		}
		old, now = metadataOf(old, kind), metadataOf(now, kind)
	}
	if reflect.TypeOf(old) != reflect.TypeOf(now) {
		// They came in different encodings.
		old, now = asUnstructured(old), asUnstructured(now)
	}
	c.Fields, c.Changed, c.By = why.Compare(old, now)
	return c
}

// metadataOf returns the part of an object that the answer to a request for metadata contains. It has the kind of the
// object, by which the values of Secrets are hidden, which may be in annotations, too.
func metadataOf(object client.Object, kind schema.GroupVersionKind) client.Object {
	part := &unstructured.Unstructured{Object: map[string]any{"metadata": asUnstructured(object).Object["metadata"]}}
	part.SetGroupVersionKind(kind)
	return part
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
	switch mediaType {
	case "application/json-patch+json":
		return nil
	case "application/apply-patch+yaml":
		plain, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil
		}
		data, as = plain, encodedJSON
	}
	object, err := decode(data, as)
	if err != nil {
		return nil
	}
	return asUnstructured(object)
}

// wrote remembers which request made a version. Its delivery may have come before the answer.
func (o *observer) wrote(version Version, r *Request) {
	r.Delivered = cmp.Or(r.Delivered, o.shown.find(version))
	o.writes.add(version, r.ID)
}

// recent finds numbers by versions, of the latest ones.
type recent struct {
	numbers map[Version]uint64
	keys    []Version // oldest first, from next on
	next    int
}

func (r *recent) add(version Version, number uint64) {
	if r.numbers == nil {
		r.numbers = map[Version]uint64{}
	}
	if len(r.keys) < keptWrites {
		r.keys = append(r.keys, version)
	} else {
		delete(r.numbers, r.keys[r.next])
		r.keys[r.next] = version
		r.next = (r.next + 1) % keptWrites
	}
	r.numbers[version] = number
}

func (r *recent) find(version Version) uint64 { return r.numbers[version] }
