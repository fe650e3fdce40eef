// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDeletionsOfSeveralObjects are the operator's own, whether the event or the answer comes first.
func TestDeletionsOfSeveralObjects(t *testing.T) {
	t.Parallel()
	pods, all := Resource{Version: "v1", Resource: "pods"}, Resource{Version: "v1", Resource: "pods", Namespace: "a"}
	object := func(name, version, owner, more string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"a","uid":%q,"resourceVersion":%q,`+
			`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Shop","name":%q,"uid":%[4]q,"controller":true}]%s}}`, name, name, version, owner, more)
	}
	list := func(objects ...string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"PodList","metadata":{},"items":[%s]}`, strings.Join(objects, ","))
	}
	const deleting, moved = `,"deletionTimestamp":"2026-01-01T12:00:00Z","deletionGracePeriodSeconds":30`, `,"deletionTimestamp":"2026-01-01T11:59:31Z","deletionGracePeriodSeconds":0`
	d := newDesk(t)
	for _, name := range []string{"early", "late", "slow", "before"} {
		d.show(1, pods, "ADDED", object(name, "1", "web", ""))
	}
	d.show(1, pods, "MODIFIED", object("before", "2", "web", deleting)) // a user deletes it
	d.show(1, pods, "DELETED", object("early", "3", "web", ""))
	got := d.answer("deletecollection", all, list(object("early", "1", "web", ""), object("late", "1", "web", ""), object("slow", "1", "web", ""), object("before", "2", "web", deleting)))
	if got.Items != 4 || got.Object == nil || got.Object.Kind != "Pod" || got.Object.Name != "" || len(got.Object.Owners) != 1 || got.Object.Owners[0].Name != "web" || got.Delivered != 1 {
		t.Errorf("the deletion is %+v of %+v", got, got.Object)
	}
	if want := []string{"early", "late", "slow", "before"}; !slices.Equal(got.Deleted, want) {
		t.Errorf("it deleted %q", got.Deleted)
	}
	for _, event := range []*Delivery{
		d.show(1, pods, "DELETED", object("late", "4", "web", "")), d.show(1, pods, "MODIFIED", object("slow", "5", "web", deleting)),
		d.show(1, pods, "MODIFIED", object("slow", "6", "web", moved)), d.show(1, pods, "DELETED", object("slow", "7", "web", moved)),
	} {
		isOfKubelet := event.Object.ResourceVersion == "6"
		isMade := slices.ContainsFunc(event.Shows(), func(shown Version) bool { return slices.Contains(got.Made(), shown) })
		if (event.Write != got.ID) != isOfKubelet || isMade == isOfKubelet {
			t.Errorf("%s %s is of %d, and made by the request: %t", event.Type, event.Object.Name, event.Write, isMade)
		}
	}
	if event := d.show(1, pods, "MODIFIED", object("before", "7", "web", deleting+`,"labels":{"a":"b"}`)); event.Write != 0 {
		t.Error("a label of another writer is of its own")
	}
	if got := d.answer("deletecollection", all, list(object("before", "7", "web", deleting))); got.Delivered != 0 {
		t.Errorf("the deletion of another client is taken for the echo of %+v", got)
	}
	if got := d.answer("deletecollection", all, list(object("x", "7", "web", ""), object("y", "8", "other", ""))); len(got.Object.Owners) != 0 {
		t.Errorf("the owner of several is %+v", got.Object.Owners)
	}
	if got := d.answer("deletecollection", all, list()); got.Change == nil || !got.Change.None || len(got.Made()) > 0 {
		t.Errorf("the deletion of nothing is %+v", got)
	}
	var many []string
	for i := range maxDeleted + 1 {
		many = append(many, object(fmt.Sprint("many-", i), "9", "web", ""))
	}
	if got := d.answer("deletecollection", all, list(many...)); got.Items != maxDeleted+1 || len(got.Deleted) != maxDeleted {
		t.Errorf("of %d objects, %d are listed", got.Items, len(got.Deleted))
	}
}

// TestScales have the version of the object that they are of.
func TestScales(t *testing.T) {
	t.Parallel()
	deployments := Resource{Group: "apps", Version: "v1", Resource: "deployments"}
	scale := Resource{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "a", Name: "web"}
	object := func(version string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":%q,`+
			`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Shop","name":"web","uid":"o","controller":true}]}}`, version)
	}
	answer := func(version string) string {
		return fmt.Sprintf(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":%q},"spec":{"replicas":3}}`, version)
	}
	d := newDesk(t)
	if got := d.answer("patch", scale, answer("1")); got.Object.Kind != "Scale" || got.Change != nil {
		t.Errorf("the scale of something unknown is %+v", got)
	}
	d.show(1, deployments, "MODIFIED", object("2"))
	if got := d.answer("patch", scale, answer("2")); got.Change == nil || !got.Change.None {
		t.Errorf("a scale that changes nothing is %+v", got)
	}
	got := d.answer("patch", scale, answer("3"))
	if got.Object.Kind != "Deployment" || got.Object.Group != "apps" || len(got.Object.Owners) != 1 || got.Change != nil {
		t.Errorf("a scale is %+v of %+v", got, got.Object)
	}
	if event := d.show(1, deployments, "MODIFIED", object("3")); event.Write != got.ID {
		t.Errorf("its event is %+v", event)
	}
	if event := d.show(1, deployments, "MODIFIED", object("4")); event.Write != 0 {
		t.Errorf("an event of another is %+v", event)
	}
}

// TestEvictions are deletions, and their answers do not contain the pod.
func TestEvictions(t *testing.T) {
	t.Parallel()
	pods := Resource{Version: "v1", Resource: "pods"}
	evict := Resource{Version: "v1", Resource: "pods", Subresource: "eviction", Namespace: "a"}
	object := func(name, version, more string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"a","uid":%[1]q,"resourceVersion":%q%s}}`, name, version, more)
	}
	const deleting = `,"deletionTimestamp":"2026-01-01T12:00:00Z","deletionGracePeriodSeconds":30`
	const evicted = `{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Success","code":201}`
	isMade := func(r *Request, d *Delivery) bool {
		return slices.ContainsFunc(d.Shows(), func(shown Version) bool { return slices.Contains(r.Made(), shown) })
	}
	d := newDesk(t)
	for _, name := range []string{"web", "slow", "before"} {
		d.show(1, pods, "ADDED", object(name, "1", ""))
	}
	evict.Name = "web"
	got := d.answer("create", evict, evicted)
	if got.Object == nil || got.Object.Kind != "Pod" || got.Object.UID != "web" {
		t.Fatalf("the eviction is of %+v", got.Object)
	}
	for _, event := range []*Delivery{d.show(1, pods, "MODIFIED", object("web", "2", deleting)), d.show(1, pods, "DELETED", object("web", "3", deleting))} {
		if event.Write != got.ID || !isMade(got, event) {
			t.Errorf("%s %s is of %d", event.Type, event.Object.ResourceVersion, event.Write)
		}
	}
	// A user has deleted this one before; the eviction is not what begins its deletion.
	evict.Name = "before"
	begun := d.show(1, pods, "MODIFIED", object("before", "4", deleting))
	if got := d.answer("create", evict, evicted); got.Delivered != 0 || isMade(got, begun) || begun.Write != 0 {
		t.Errorf("the deletion by a user is taken for the echo of %+v", got)
	}
	// The answer comes after the event.
	evict.Name = "slow"
	decoded, err := decode([]byte(evicted), encodedJSON)
	if err != nil {
		t.Fatal(err)
	}
	x := &exchange{began: time.Now(), Call: Call{Request: Request{ID: 99, Verb: "create", Status: http.StatusCreated, Resource: evict}}}
	begun = d.show(1, pods, "MODIFIED", object("slow", "5", deleting))
	d.understand(x, decoded, []byte(evicted), encodedJSON)
	if x.Request.Delivered != 1 || !isMade(&x.Request, begun) {
		t.Errorf("an eviction with a late answer is %+v", x.Request)
	}
	// Others have no pod.
	evict.Name = "web"
	if got := d.answer("create", evict, evicted); got.Object != nil {
		t.Errorf("the eviction of a pod that is gone is of %+v", got.Object)
	}
	evict.Name = "slow"
	x.Request = Request{ID: 98, Verb: "create", Status: http.StatusCreated, Resource: evict, DryRun: true}
	if d.understand(x, decoded, []byte(evicted), encodedJSON); x.Request.Object != nil {
		t.Errorf("a dry run is of %+v", x.Request.Object)
	}
	x.Request = Request{ID: 97, Verb: "create", Status: http.StatusTooManyRequests, Resource: evict}
	if d.understand(x, decoded, []byte(evicted), encodedJSON); x.Request.Object != nil {
		t.Errorf("a refused one is of %+v", x.Request.Object)
	}
}
