// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
)

// archive is a PodCluster with a new template, and the revisions of this template and the one before.
type archive struct {
	cluster     *kubegroupv1.PodCluster
	old, latest *appsv1.ControllerRevision
	// hash is the one of the old revision.
	hash string
	// vanished is what has left the cache, and released is the old revision before it lost its owner and its labels.
	vanished []client.Object
	released *appsv1.ControllerRevision
}

// createdByUs is what the server records about a revision that we have created.
func createdByUs() []metav1.ManagedFieldsEntry {
	entries := ownFieldsOf(`{"f:data":{".":{},"f:spec":{}},"f:revision":{}}`)
	entries[0].APIVersion = "apps/v1"
	return entries
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	revisionOf := func(cluster *kubegroupv1.PodCluster, number int64) *appsv1.ControllerRevision {
		template, err := templateOf(&cluster.Spec)
		if err != nil {
			t.Fatal(err)
		}
		data, err := dataOf(template)
		if err != nil {
			t.Fatal(err)
		}
		return revisionObject(cluster, data, revisionHash(data, 0), number)
	}
	a := &archive{cluster: clusterOf(t, "{image: b, updateStrategy: {partition: 1}}")}
	a.old, a.latest = revisionOf(clusterOf(t, "{image: a}"), 1), revisionOf(a.cluster, 2)
	a.cluster.Status.CurrentRevision, a.hash = a.old.Name, a.old.Labels[labelRevision]
	return a
}

// find runs findRevisions with a cache that holds what has the label of the fleet. It returns what was found, and the
// numbers of requests that read and write revisions.
func (a *archive) find(t *testing.T, members ...*member) (found world, gets, writes int, server client.Client) {
	t.Helper()
	count := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		if _, is := object.(*appsv1.ControllerRevision); is {
			writes++
		}
		return c.Patch(ctx, object, patch, options...)
	}}
	stored := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(a.cluster, a.old, a.latest).WithStatusSubresource(a.cluster).WithReturnManagedFields().
		WithIndex(&appsv1.ControllerRevision{}, clusterIndex, clusterKeys).WithInterceptorFuncs(count).Build()
	cached := interceptor.NewClient(stored, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := c.List(ctx, list, options...); err != nil {
				return err
			}
			if revisions, is := list.(*appsv1.ControllerRevisionList); is {
				kept := revisions.Items[:0]
				for _, one := range revisions.Items {
					if one.Labels[flow.LabelManagedBy] == flow.ManagedBy {
						kept = append(kept, one)
					}
				}
				revisions.Items = kept
			}
			return nil
		},
	})
	reader := interceptor.NewClient(stored, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*appsv1.ControllerRevision); is {
				gets++
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	r := &Reconciler{Client: cached, Reader: reader}
	for _, object := range a.vanished {
		r.vanished.notice().Delete(event.DeleteEvent{Object: object})
	}
	if a.released != nil && !r.vanished.notice().Update(event.UpdateEvent{ObjectOld: a.released, ObjectNew: a.old}) {
		t.Error("an event is held back")
	}
	newPasses(t, r, a.cluster)(func(ctx context.Context, s *scope) {
		s.world.members = members
		if err := r.findRevisions(ctx, s); err != nil {
			t.Fatal(err)
		}
		found = s.world
	})
	return found, gets, writes, stored
}

// What a revision holds is known nowhere else, so it must be found whatever was done to its labels, and get them back.
func TestRevisionsAreFoundWithoutTheirLabels(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(*archive)
		// follower is whether a pod follows the old revision.
		follower bool
		// gets are reads that find it. Each correction reads it once more, to name the writer.
		gets, writes int
	}{
		{name: "as they should be", edit: func(*archive) {}, follower: true},
		{name: "without the instance", edit: func(a *archive) { delete(a.old.Labels, flow.LabelInstance) }, writes: 1},
		{name: "without the kind", edit: func(a *archive) { delete(a.old.Labels, flow.LabelKind) }, writes: 1},
		{name: "without the hash", edit: func(a *archive) { delete(a.old.Labels, labelRevision) }, writes: 1},
		{name: "with another owner reference", edit: func(a *archive) { a.old.OwnerReferences[0].BlockOwnerDeletion = new(false) }, writes: 1},
		{name: "not in the cache", edit: func(a *archive) { delete(a.old.Labels, flow.LabelManagedBy) }, gets: 1, writes: 1},
		{name: "without any label", edit: func(a *archive) { a.old.Labels = nil }, gets: 1, writes: 1},
		{name: "one that only a pod names", edit: func(a *archive) {
			a.old.Labels, a.cluster.Status.CurrentRevision = nil, ""
		}, follower: true, gets: 1, writes: 1},
		{name: "one that was in the cache until now", edit: func(a *archive) {
			a.vanished = []client.Object{a.old.DeepCopy()}
			a.old.Labels, a.cluster.Status.CurrentRevision = nil, ""
		}, gets: 1, writes: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newArchive(t)
			hash, want := a.old.Labels[labelRevision], maps.Clone(a.old.Labels)
			test.edit(a)
			var members []*member
			if test.follower {
				members = append(members, memberOf(a.cluster.Name, newPod(t, a.cluster.Name, 0, hash, "")))
			}
			found, gets, writes, server := a.find(t, members...)
			if one := found.revisions[hash]; one == nil || one.template.Spec.Containers[0].Image != "a" || len(found.revisions) != 2 {
				t.Fatalf("the revisions are %v", found.revisions)
			}
			if found.update.object.Name != a.latest.Name || found.current.hash != hash && a.cluster.Status.CurrentRevision != "" {
				t.Errorf("the current revision is %s, and the one of the template %s", found.current.hash, found.update.hash)
			}
			live := &appsv1.ControllerRevision{}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(a.old), live); err != nil || !maps.Equal(live.Labels, want) {
				t.Errorf("it has become %v, %v", live.Labels, err)
			}
			if !hasReference(live, controllerRef(a.cluster)) {
				t.Errorf("its owners are %+v", live.OwnerReferences)
			}
			if gets != test.gets+test.writes || writes != test.writes {
				t.Errorf("%d requests read and %d wrote", gets, writes)
			}
		})
	}
}

// A revision that is gone is searched for once, and an object of another owner under its name is not taken for it.
func TestRevisionsThatAreGone(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(*archive)
		gone bool
	}{
		{"deleted", func(a *archive) { a.old.Name, a.old.OwnerReferences = "web-other", nil }, true},
		{"deleted just now", func(a *archive) {
			a.vanished = []client.Object{a.old.DeepCopy()}
			a.old.Name, a.old.OwnerReferences = "web-other", nil
		}, true},
		{"of another controller", func(a *archive) { a.old.OwnerReferences[0].UID = "other" }, true},
		{"without a controller", func(a *archive) { a.old.OwnerReferences = nil }, true},
		{"without a controller, but ours", func(a *archive) {
			a.old.OwnerReferences, a.old.ManagedFields = nil, createdByUs()
		}, false},
		{"without a controller and our labels, but ours and in the cache", func(a *archive) {
			a.released = a.old.DeepCopy()
			a.old.OwnerReferences, a.old.Labels, a.old.ManagedFields = nil, map[string]string{flow.LabelManagedBy: flow.ManagedBy}, createdByUs()
			a.cluster.Status.CurrentRevision = ""
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newArchive(t)
			a.old.Labels = nil
			test.edit(a)
			found, gets, writes, _ := a.find(t)
			if test.gone && (len(found.revisions) != 1 || found.current != found.update || gets != 1 || writes != 0) {
				t.Errorf("found %v with %d requests that read and %d that wrote", found.revisions, gets, writes)
			}
			if !test.gone && (len(found.revisions) != 2 || len(found.revisions[a.hash].object.OwnerReferences) != 1 || found.revisions[a.hash].object.Labels[flow.LabelInstance] == "") {
				t.Errorf("found %v", found.revisions)
			}
			if !test.gone && a.cluster.Status.CurrentRevision != "" && found.current.object.Name != a.old.Name {
				t.Errorf("the current revision is %s", found.current.object.Name)
			}
		})
	}
}

// A controller that removes a label of a revision again and again does not keep the pods from being managed.
func TestAContestedRevisionIsStillKnown(t *testing.T) {
	a := newArchive(t)
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(a.cluster, a.old, a.latest).WithStatusSubresource(a.cluster).
		WithIndex(&appsv1.ControllerRevision{}, clusterIndex, clusterKeys).Build()
	r := &Reconciler{Client: server, Reader: server}
	pass := newPasses(t, r, a.cluster)
	for range 30 {
		live := &appsv1.ControllerRevision{}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(a.old), live); err != nil {
			t.Fatal(err)
		}
		delete(live.Labels, flow.LabelInstance)
		if err := server.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		var contested error
		pass(func(ctx context.Context, s *scope) {
			if err := r.findRevisions(ctx, s); err != nil || len(s.world.revisions) != 2 {
				t.Fatalf("the revisions are %v, %v", s.world.revisions, err)
			}
			contested = s.contested
		})
		if flow.Reason(contested) == flow.ReasonContested {
			return
		}
	}
	t.Error("it is restored without end")
}

// The PodCluster of a revision may be gone as well, so that nothing asks for the revision.
func TestVanishedRevisionsAreForgotten(t *testing.T) {
	var v vanished
	a := newArchive(t)
	v.add(a.old, noon)
	v.add(a.latest, noon.Add(vanishedFor+time.Second))
	if got := v.of(a.cluster.UID); !slices.Equal(got, []string{a.latest.Name}) {
		t.Errorf("got %v", got)
	}
	v.forget(a.cluster.UID, a.latest.Name)
	if got := v.of(a.cluster.UID); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}
