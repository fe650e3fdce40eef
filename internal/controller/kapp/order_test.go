// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "github.com/opdock/opdock/api/app/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
)

func TestComponentsComeInOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.store(app("web", "db", "cache"), app("cache"), app("db"))
	s.awaitRows(kapp, "web:Waiting", "cache:Progressing", "db:Progressing")
	s.report("store-db", isReady)
	s.absent("store-web")
	s.report("store-cache", isReady)
	s.report("store-web", isOnItsWay)
	s.report("store-web", isReady)
	kapp = s.awaitReady(kapp)
	if kapp.Status.ComponentCount != 3 || kapp.Status.ReadyComponentCount != 3 || kapp.Status.Components[0].ResourceName != "store-web" {
		t.Errorf("%+v", kapp.Status)
	}
}

func withImage(image string) string {
	return "{apiVersion: app.example.com/v1, kind: AppService, spec: {image: " + image + "}}"
}

func imageIs(image string) func(*appv1.AppService) string {
	return func(app *appv1.AppService) string {
		if app.Spec.Image == image {
			return ""
		}
		return "its image is " + app.Spec.Image
	}
}

func TestChangesRollOutInOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.playUntilReady(s.store(component("db", withImage("a")), component("web", withImage("a"), "db")))
	before := s.awaitApp("store-web", imageIs("a"))
	s.change(kapp, component("db", withImage("b")), component("web", withImage("b"), "db"))
	s.awaitApp("store-db", imageIs("b"))
	kapp = s.awaitRows(kapp, "db:Progressing", "web:Progressing")
	if row := kapp.Status.Components[1]; len(row.WaitingFor) != 1 || row.WaitingFor[0] != "db" || row.Message == "" {
		t.Errorf("%+v", row)
	}
	s.awaitApp("store-web", imageIs("a"))
	s.report("store-db", isReady)
	after := s.awaitApp("store-web", imageIs("b"))
	if before.UID != after.UID {
		t.Error("it was recreated instead of changed")
	}
	s.playUntilReady(kapp)
}

func TestUpToDateComponentsDoNotWait(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.playUntilReady(s.store(app("db"), app("web", "db")))
	s.report("store-db", isOnItsWay)
	kapp = s.awaitRows(kapp, "db:Progressing", "web:Ready")
	if kapp.Status.ReadyComponentCount != 1 || kapp.Status.Components[0].Message != isOnItsWay.Message {
		t.Errorf("%+v", kapp.Status)
	}
	s.playUntilReady(kapp)
}

// Only a new configuration waits for the dependencies.
func TestDriftDoesNotWait(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.playUntilReady(s.store(component("db", withImage("a")), component("web", withImage("a"), "db")))
	s.report("store-db", isOnItsWay)
	kapp = s.awaitRows(kapp, "db:Progressing", "web:Ready")
	for _, metadata := range []string{`{}`, `{"ownerReferences": null}`, `{"annotations": {"opdock.dev/applied": null}}`} {
		s.patch("store-web", `{"metadata": `+metadata+`, "spec": {"image": "evil", "minReadySeconds": 7}}`)
		s.awaitApp("store-web", func(web *appv1.AppService) string {
			if web.Spec.Image != "a" || web.Spec.MinReadySeconds != 0 || !metav1.IsControlledBy(web, kapp) {
				return "the edit is still there"
			}
			return ""
		})
	}
	s.awaitRows(kapp, "db:Progressing", "web:Progressing")
	s.change(kapp, component("db", withImage("a")), component("web", withImage("b"), "db"))
	kapp = s.awaitRows(kapp, "db:Progressing", "web:Progressing")
	s.awaitApp("store-web", imageIs("a"))
	s.playUntilReady(kapp)
	s.awaitApp("store-web", imageIs("b"))
}

func TestComponentsSpeakForThemselves(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.store(app("db"), app("web", "db"))
	s.report("store-db", isOnItsWay, isStalled)
	kapp = s.awaitStalled(kapp, "ComponentStalled", "db: it keeps restarting")
	s.awaitRows(kapp, "db:Stalled", "web:Waiting")
	s.report("store-db", metav1.Condition{Type: sharedv1.ConditionReady, Status: metav1.ConditionUnknown, Reason: "Suspended"})
	s.awaitStalled(kapp, "ComponentSuspended", "db: it is suspended")
	s.playUntilReady(kapp)
}

func TestRemovedComponentsGoInReverseOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.playUntilReady(s.store(app("db"), app("queue", "db"), app("web", "queue"), app("other")))
	// A finalizer blocks the deletion of web for a moment.
	s.patch("store-web", `{"metadata": {"finalizers": ["example.com/moment"]}}`)
	s.change(kapp, app("other"))
	kapp = s.awaitRows(kapp, "other:Ready", "db:Deleting", "queue:Deleting", "web:Deleting")
	for _, name := range []string{"store-db", "store-queue"} {
		if object := s.awaitApp(name, exists); !object.DeletionTimestamp.IsZero() {
			t.Errorf("%s is deleted before web is gone", name)
		}
	}
	if row := kapp.Status.Components[1]; row.Kind != "AppService" || row.ResourceName != "store-db" || !strings.Contains(row.Message, "after queue") {
		t.Errorf("%+v", row)
	}
	s.patch("store-web", `{"metadata": {"finalizers": null}}`)
	kapp = s.awaitReady(kapp)
	for _, name := range []string{"store-db", "store-queue", "store-web"} {
		s.absent(name)
	}
	if len(kapp.Status.Components) != 1 {
		t.Errorf("%+v", kapp.Status)
	}
}

// A component that has lost its owner reference while no manager ran is adopted, or pruned if the spec no longer has it.
func TestAnOrphanThatIsRemovedFromTheSpecGoes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	store := s.playUntilReady(s.store(app("db"), app("web", "db")))
	s.stop()
	s.patch("store-web", `{"metadata": {"ownerReferences": null, "finalizers": ["example.com/hold"]}}`)
	s.change(store, app("db"))
	s.start()
	s.awaitApp("store-web", func(web *appv1.AppService) string {
		if web.DeletionTimestamp.IsZero() {
			return "it is not deleted"
		}
		return ""
	})
	// No event of an object without an owner triggers the KAPP.
	s.patch("store-web", `{"metadata": {"finalizers": null}}`)
	s.playUntilReady(store)
	s.absent("store-web")
}

func TestADependencyStaysUntilItsDependentIsChanged(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.playUntilReady(s.store(app("db"), app("web", "db")))
	// The web of this spec does not need db any more, but the one that is there does until it may be changed.
	s.change(kapp, app("cache"), component("web", withImage("b"), "cache"))
	kapp = s.awaitRows(kapp, "cache:Progressing", "web:Progressing", "db:Deleting")
	if object := s.awaitApp("store-db", exists); !object.DeletionTimestamp.IsZero() {
		t.Error("db is deleted while web needs it")
	}
	s.playUntilReady(kapp)
	s.absent("store-db")
}

// With several namespaces, a pass does not wait until the cache has what the pass before it wrote.
func TestTheCacheMayLagBehind(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.stop()
	s.others = []string{clustertest.Namespace(t)}
	s.start()
	kapp := s.playUntilReady(s.store(app("db"), app("queue", "db"), app("web", "queue", "db")))
	for range 3 {
		kapp = s.playUntilReady(s.change(kapp, component("db", withImage("b")), component("web", withImage("b"), "db")))
		s.absent("store-queue")
		kapp = s.playUntilReady(s.change(kapp, app("queue"), app("web", "queue")))
		s.absent("store-db")
		kapp = s.playUntilReady(s.change(kapp, app("db"), app("queue", "db"), app("web", "queue", "db")))
	}
	if err := s.Delete(t.Context(), kapp); err != nil {
		t.Fatal(err)
	}
	fleettest.AwaitGone(t, s.Client, kapp)
	s.absent("store-db")
}

func TestARenamedObjectIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.playUntilReady(s.store(app("db"), app("web", "db")))
	const renamed = "{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: postgres}, spec: {image: nginx}}"
	s.change(kapp, component("db", renamed), app("web", "db"))
	s.awaitApp("postgres", exists)
	fleettest.AwaitGone(t, s.Client, s.object("store-db"))
	kapp = s.playUntilReady(kapp)
	if kapp.Status.Components[0].ResourceName != "postgres" || len(kapp.Status.Components) != 2 {
		t.Errorf("%+v", kapp.Status)
	}
	s.awaitApp("store-web", exists)
}

func TestNothingGoesForWhatCannotCome(t *testing.T) {
	s := newStage(t)
	kapp := s.playUntilReady(s.store(app("web")))
	foreign := s.object("taken")
	foreign.Spec.Image = "nginx"
	if err := s.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	s.change(kapp, component("web", "{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: taken}, spec: {image: nginx}}"))
	s.awaitStalled(kapp, "ErrResourceExists", "AppService taken already exists")
	if object := s.awaitApp("store-web", exists); !object.DeletionTimestamp.IsZero() {
		t.Error("the old object is deleted though there is no new one")
	}
	if err := s.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	s.playUntilReady(kapp)
	s.absent("store-web")
}

func TestEveryVersionIsTheSameObject(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	old := strings.Replace(withImage("a"), "example.com/v1", "example.com/v1alpha1", 1)
	kapp := s.playUntilReady(s.store(component("web", old)))
	before := s.awaitApp("store-web", imageIs("a"))
	s.playUntilReady(s.change(kapp, component("web", withImage("b"))))
	if after := s.awaitApp("store-web", imageIs("b")); before.UID != after.UID {
		t.Error("it was recreated")
	}
}

func TestSuspendLeavesEverythingAsItIs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.playUntilReady(s.store(component("web", withImage("a")), app("old")))
	s.edit(kapp, func(kapp *kappv1.KAPP) {
		kapp.Spec.Suspend = true
		kapp.Spec.Components = parse(t, component("web", withImage("b"))).Spec.Components
	})
	s.await(kapp, func(kapp *kappv1.KAPP) string {
		return fleettest.Condition(kapp.Status.Conditions, kapp.Generation, sharedv1.ConditionReady, metav1.ConditionUnknown, "Suspended")
	})
	s.awaitApp("store-web", imageIs("a"))
	s.awaitApp("store-old", exists)
	s.playUntilReady(s.edit(kapp, func(kapp *kappv1.KAPP) { kapp.Spec.Suspend = false }))
	s.awaitApp("store-web", imageIs("b"))
	s.absent("store-old")
}
