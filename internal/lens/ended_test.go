// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWritesDuringADeletion are to an object that is being deleted. The answer to the one that ends it has the version of before.
func TestWritesDuringADeletion(t *testing.T) {
	t.Parallel()
	pod := func(version string, grace *int64, label string, finalizers ...string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "web", UID: "u", ResourceVersion: version, Labels: map[string]string{"a": label}, Finalizers: finalizers,
			DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, DeletionGracePeriodSeconds: grace,
		}}
	}
	namespace := func(version, label string, finalizers ...corev1.FinalizerName) *corev1.Namespace {
		return &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{
				Name: "web", UID: "u", ResourceVersion: version, Labels: map[string]string{"a": label}, DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)},
			},
			Spec: corev1.NamespaceSpec{Finalizers: finalizers},
		}
	}
	generic := func(object client.Object, kind string) client.Object {
		result := asUnstructured(object)
		result.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		return result
	}
	for name, test := range map[string]struct {
		resource    string
		before, now client.Object
		known       bool
	}{
		"during the grace period":             {"pods", pod("1", ptr.To(int64(30)), "1"), pod("2", ptr.To(int64(30)), "2"), true},
		"with a finalizer":                    {"pods", pod("1", ptr.To(int64(0)), "1", "x"), pod("2", ptr.To(int64(0)), "2", "x"), true},
		"without the last finalizer":          {"pods", pod("1", ptr.To(int64(0)), "1", "x"), pod("1", ptr.To(int64(0)), "1"), false},
		"without it, and no grace period set": {"pods", pod("1", nil, "1", "x"), pod("1", nil, "1"), false},
		"to a namespace that is not empty":    {"namespaces", namespace("1", "1", "kubernetes"), namespace("2", "2", "kubernetes"), true},
		"to a namespace, as JSON": {
			"namespaces", generic(namespace("1", "1", "kubernetes"), "Namespace"), generic(namespace("2", "2", "kubernetes"), "Namespace"), true,
		},
		"to a namespace, of its metadata": {"namespaces", generic(namespace("1", "1"), "Namespace"), generic(namespace("2", "2"), partialMetadata), true},
		"to an empty namespace":           {"namespaces", namespace("1", "1", "kubernetes"), namespace("1", "1"), false},
		"to an empty namespace, as JSON": {
			"namespaces", generic(namespace("1", "1", "kubernetes"), "Namespace"), generic(namespace("1", "1"), "Namespace"), false,
		},
	} {
		r := &Request{Verb: "patch", Status: http.StatusOK, Resource: Resource{Version: "v1", Resource: test.resource, Name: "web"}}
		r.Finalized = hasEnded(r.Resource, test.now)
		c := changed(r, versionOf(test.before, nil, encodedProtobuf, false, time.Time{}), false, test.now, "")
		if r.Finalized == test.known || (c != nil) != test.known || c != nil && (len(c.Fields) != 1 || c.Fields[0].Path != "metadata.labels.a") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// desk is an observer that a test tells what passed.
type desk struct {
	*testing.T
	*observer
	lastID uint64
	dryRun bool
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return &desk{t, &observer{
		memory: newMemory(1 << 20), resources: map[schema.GroupKind]string{}, kinds: map[schema.GroupResource]string{}, roles: map[objectKey]bool{},
	}, 0, false}
}

// answer is the answer to a write.
func (d *desk) answer(verb string, resource Resource, body string) *Request {
	d.Helper()
	decoded, err := decode([]byte(body), encodedJSON)
	if err != nil {
		d.Fatal(err)
	}
	d.lastID++
	x := &exchange{began: time.Now(), Call: Call{Request: Request{ID: 100 + d.lastID, Verb: verb, Status: http.StatusOK, Resource: resource, DryRun: d.dryRun}}}
	d.understand(x, decoded, []byte(body), encodedJSON)
	return &x.Request
}

// show is an event of a watch.
func (d *desk) show(watch uint64, resource Resource, what, body string) *Delivery {
	event := fmt.Sprintf(`{"type":%q,"object":%s}`, what, body)
	return d.delivery(&observation{watching: &watching{id: watch, resource: resource, as: encodedJSON}, data: []byte(event), at: time.Now()})
}

// TestWhoDeletes has an object that a user or the operator deletes, and that is gone once the operator removes its finalizer.
func TestWhoDeletes(t *testing.T) {
	t.Parallel()
	shops := Resource{Group: "example.com", Version: "v1", Resource: "shops"}
	web := Resource{Group: "example.com", Version: "v1", Resource: "shops", Namespace: "a", Name: "web"}
	object := func(version, more string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":%q%s}}`, version, more)
	}
	const deleting, finalizer = `,"deletionTimestamp":"2026-01-01T12:00:00Z","deletionGracePeriodSeconds":0`, `,"finalizers":["x"]`
	const slow = `,"deletionTimestamp":"2026-01-01T12:00:30Z","deletionGracePeriodSeconds":30`

	d := newDesk(t)
	d.show(1, shops, "ADDED", object("1", finalizer))
	if got := d.show(1, shops, "MODIFIED", object("2", finalizer+deleting)); got.Write != 0 {
		t.Errorf("the deletion by a user is shown as %+v", got)
	}
	ended := d.answer("update", web, object("2", deleting))
	if !ended.Finalized || ended.Change != nil || ended.Delivered != 0 {
		t.Errorf("the write that ends it is %+v", ended)
	}
	if got := d.show(2, shops, "MODIFIED", object("2", finalizer+deleting)); got.Write != 0 {
		t.Errorf("another watch shows the deletion by a user as %+v", got)
	}
	if got := d.show(1, shops, "DELETED", object("3", deleting)); got.Write != ended.ID {
		t.Errorf("its end is shown as %+v", got)
	}

	d = newDesk(t)
	d.show(1, shops, "ADDED", object("1", finalizer))
	deleted := d.answer("delete", web, object("2", finalizer+deleting))
	again := d.answer("delete", web, object("2", finalizer+deleting))
	if got := d.show(1, shops, "MODIFIED", object("2", finalizer+deleting)); got.Write != deleted.ID {
		t.Errorf("the deletion by the operator is shown as %+v", got)
	}
	if got := d.show(1, shops, "DELETED", object("3", deleting)); got.Write != again.ID {
		t.Errorf("its end is shown as %+v", got)
	}

	d = newDesk(t) // the operator shortens the grace period of a deletion by a user
	d.show(1, shops, "ADDED", object("1", ""))
	d.show(1, shops, "MODIFIED", object("2", slow))
	deleted = d.answer("delete", web, object("4", deleting))
	if deleted.Delivered != 0 {
		t.Errorf("the deletion by a user is taken for the echo of %+v", deleted)
	}
	if got := d.show(2, shops, "MODIFIED", object("2", slow)); got.Write != 0 {
		t.Errorf("another watch shows the deletion by a user as %+v", got)
	}

	d = newDesk(t)
	d.show(1, shops, "ADDED", object("1", "")) // whose version is not of the operator
	deleted = d.answer("delete", web, object("1", ""))
	if deleted.Delivered != 0 {
		t.Errorf("a deletion without a finalizer is %+v", deleted)
	}
	if got := d.show(1, shops, "DELETED", object("2", "")); got.Write != deleted.ID {
		t.Errorf("its end is shown as %+v", got)
	}
}

// TestDeletionsThatAreAnsweredLate are reported by a watch before their answer, which names no kind and no owner.
func TestDeletionsThatAreAnsweredLate(t *testing.T) {
	t.Parallel()
	pods := Resource{Version: "v1", Resource: "pods"}
	object := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"a","uid":%q,"resourceVersion":"1",`+
			`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Shop","name":"web","uid":"o","controller":true}]}}`, name, "uid-"+name)
	}
	answer := func(d *desk, name string) *Request {
		return d.answer("delete", Resource{Version: "v1", Resource: "pods", Namespace: "a", Name: name},
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","status":"Success","details":{"name":%q,"kind":"pods","uid":%q}}`, name, "uid-"+name))
	}
	d := newDesk(t)
	if got := answer(d, "unknown"); got.Object != nil {
		t.Errorf("what was never seen is %+v", got.Object)
	}
	d.show(1, pods, "ADDED", object("web-1"))
	d.show(1, pods, "DELETED", object("web-1"))
	d.show(2, pods, "DELETED", object("web-1"))
	if got := answer(d, "web-1"); got.Object == nil || got.Object.Kind != "Pod" || got.Object.UID != "uid-web-1" || len(got.Object.Owners) != 1 || got.Delivered == 0 {
		t.Errorf("what a watch has reported is %+v of %+v", got.Object, got)
	}
	if got := answer(d, "web-2"); got.Object == nil || got.Object.Kind != "Pod" || got.Object.UID != "uid-web-2" || got.Object.Namespace != "a" || got.Object.Name != "web-2" {
		t.Errorf("one of a known kind is %+v", got.Object)
	}
	for i := range 2 * keptGone {
		d.show(1, pods, "DELETED", object(fmt.Sprint("other-", i)))
	}
	if len(d.gone.objects) != keptGone || len(d.gone.uids) != keptGone || d.gone.find("uid-web-1") != nil || d.gone.find(fmt.Sprint("uid-other-", keptGone)) == nil {
		t.Errorf("%d deleted objects are kept", len(d.gone.objects))
	}
}
