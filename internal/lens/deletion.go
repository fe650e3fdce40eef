// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxDeleted is how many objects of one deletecollection are listed.
const maxDeleted = 256

// isEviction reports whether a request evicts a pod, which is a deletion that may be refused.
func (r *Request) isEviction() bool {
	return r.Verb == "create" && r.Resource.Group == "" && r.Resource.Resource == "pods" && r.Resource.Subresource == "eviction"
}

// readDryRun finds out whether a deletion or an eviction is a dry run. The API server reads the options of a deletion from
// the URL only if there is no body, and those of an eviction from both.
func (x *exchange) readDryRun() {
	r := &x.Request
	options := []string{"dryRun"}
	switch {
	case r.isEviction():
		options = []string{"deleteOptions", "dryRun"}
	case r.Verb != "delete" && r.Verb != "deletecollection":
		return
	}
	sent := x.decodeSent()
	if sent == nil {
		return
	}
	values, _, _ := unstructured.NestedStringSlice(sent.Object, options...)
	r.DryRun = slices.Contains(values, metav1.DryRunAll) || r.isEviction() && r.DryRun
}

// deleted is the answer to a deletion that leaves nothing. It has only the UID of the object, which a watch may have reported as gone
// before.
func (o *observer) deleted(r *Request, answer *unstructured.Unstructured) {
	if r.Verb != "delete" || r.Status >= http.StatusBadRequest || r.DryRun {
		return
	}
	uid, _, _ := unstructured.NestedString(answer.Object, "details", "uid")
	known := o.memory.find(keyOf(r.Resource))
	if before := known.latest(); before != nil && before.uid == uid {
		if object := before.object(); object != nil {
			r.Object = nameOf(object)
		}
	}
	if r.Object == nil {
		r.Object = o.gone.find(uid)
	}
	if kind := o.kinds[schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}]; r.Object == nil && kind != "" {
		place := r.Resource
		r.Object = &Object{Group: place.Group, Version: place.Version, Kind: kind, Namespace: place.Namespace, Name: place.Name, UID: uid}
	}
	o.wrote(Version{uid, ""}, r)
}

// evicted is the answer to an eviction, which does not contain the pod. It is the one that was there when the request began.
func (o *observer) evicted(x *exchange) {
	r := &x.Request
	if !r.isEviction() || !r.IsWrite() || r.Refused() {
		return
	}
	known := o.memory.find(keyOf(r.Resource))
	var before *version
	for _, v := range known.versions {
		if before == nil || v.seen.Before(x.began) {
			before = v
		}
	}
	if before == nil || before.object() == nil {
		return
	}
	r.Object = nameOf(before.object())
	for _, version := range r.Made() {
		o.wrote(version, r)
	}
}

// deletedAll is the answer to a deletion of several objects, which has the objects as they were before.
func (o *observer) deletedAll(r *Request, list *unstructured.Unstructured) {
	objects, ok := items(list)
	if !ok || !r.IsWrite() {
		return
	}
	place := r.Resource
	r.Items = len(objects)
	r.Object = &Object{Group: place.Group, Version: place.Version, Kind: strings.TrimSuffix(list.GetKind(), "List"), Namespace: place.Namespace}
	o.name(r.Object, place)
	if len(objects) == 0 {
		r.Change = &Change{None: true}
		return
	}
	if owner := nameOf(objects[0]).controller(); owner != nil && haveController(objects, owner.UID) {
		r.Object.Owners = []Owner{*owner}
	}
	for _, object := range objects {
		uid := string(object.GetUID())
		o.wrote(Version{UID: uid}, r)
		if object.GetDeletionTimestamp() == nil { // otherwise, another client has requested the deletion before
			o.wrote(Version{uid, deletionBegins}, r)
		}
		if len(r.Deleted) < maxDeleted {
			r.Deleted = append(r.Deleted, uid)
		}
	}
}

// haveController reports whether all objects have a controller with a UID.
func haveController(objects []*unstructured.Unstructured, uid string) bool {
	for _, object := range objects {
		if owner := metav1.GetControllerOfNoCopy(object); owner == nil || string(owner.UID) != uid {
			return false
		}
	}
	return true
}

// controller returns the owner that controls an object; nil if there is none.
func (o *Object) controller() *Owner {
	for i := range o.Owners {
		if o.Owners[i].Controller {
			return &o.Owners[i]
		}
	}
	return nil
}

// hasEnded reports whether the object in the answer to a write is gone: its deletion was requested, and it has no finalizers. A pod
// stays until its grace period is over.
func hasEnded(resource Resource, object client.Object) bool {
	grace := object.GetDeletionGracePeriodSeconds()
	return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 && (grace == nil || *grace == 0) && !isHeld(resource, object)
}

// isHeld reports whether a namespace stays because of the finalizers in its spec: it has them until it is empty. Metadata alone does not
// show them.
func isHeld(resource Resource, object client.Object) bool {
	if resource.Group != "" || resource.Resource != "namespaces" {
		return false
	}
	switch object := object.(type) {
	case *corev1.Namespace:
		return len(object.Spec.Finalizers) > 0
	case *unstructured.Unstructured:
		held, _, _ := unstructured.NestedSlice(object.Object, "spec", "finalizers")
		return len(held) > 0 || object.GetKind() == partialMetadata
	}
	return true
}
