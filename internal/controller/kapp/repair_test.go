// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp_test

import (
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/controller/kapp"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
)

func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	store := s.playUntilReady(s.store(app("db"), app("web", "db")))
	original := s.awaitApp("store-web", exists)
	for _, edit := range []string{
		`{"spec": {"image": "evil"}}`,
		`{"metadata": {"labels": {"opdock.dev/component": "evil"}}}`,
		`{"metadata": {"labels": null}}`,
		`{"metadata": {"annotations": {"opdock.dev/depends-on": null}}}`,
	} {
		s.patch("store-web", edit)
		s.awaitApp("store-web", func(web *appv1.AppService) string {
			if web.Spec.Image != "nginx" || web.Labels[kapp.LabelComponent] != "web" || web.Annotations[kapp.AnnotationDependsOn] != "db" ||
				len(web.Labels) != len(original.Labels) {
				return "the edit is still there: " + edit
			}
			return ""
		})
		s.playUntilReady(store)
	}
	// Labels of others stay, and so does a number that the KAPP leaves open, if it was set by scaling. Other fields go.
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	if err := s.SubResource("scale").Update(t.Context(), original.DeepCopy(), client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	s.patch("store-web", `{"metadata": {"labels": {"team": "shop"}}, "spec": {"minReadySeconds": 7}}`)
	s.awaitApp("store-web", func(web *appv1.AppService) string {
		if web.Spec.MinReadySeconds != 0 {
			return "the field is still there"
		}
		return ""
	})
	s.playUntilReady(store)
	if web := s.awaitApp("store-web", exists); web.Labels["team"] != "shop" || web.Spec.Size == nil || *web.Spec.Size != 3 {
		t.Errorf("%+v", web)
	}
	if err := s.Delete(t.Context(), original); err != nil {
		t.Fatal(err)
	}
	s.awaitApp("store-web", func(web *appv1.AppService) string {
		if web.UID == original.UID {
			return "it has not been recreated"
		}
		return ""
	})
	s.playUntilReady(store)
}

func TestForeignObjectsAreSafe(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	foreign := s.object("store-web")
	foreign.Spec.Image = "foreign"
	if err := s.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	store := s.store(app("web"), app("other"))
	s.awaitStalled(store, "ErrResourceExists", "web: AppService store-web already exists")
	s.awaitApp("store-other", exists)
	testenv.Await(t, func() string {
		var events corev1.EventList
		if err := s.List(t.Context(), &events, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
		if slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == "ErrResourceExists" && e.Type == corev1.EventTypeWarning && e.InvolvedObject.Name == "store"
		}) {
			return ""
		}
		return "there is no warning"
	})
	if after := s.awaitApp("store-web", exists); after.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("it was changed: %+v", after)
	}
	// Nor does it go with the KAPP.
	if err := s.Delete(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	fleettest.AwaitGone(t, s.Client, store)
	if after := s.awaitApp("store-web", exists); after.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("it was changed: %+v", after)
	}
	store = s.store(app("web"))
	s.awaitStalled(store, "ErrResourceExists", "")
	if err := s.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	s.playUntilReady(store)
}

func TestTheServersAnswerIsShown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const refused, unknown = "{apiVersion: app.example.com/v1, kind: AppService, spec: {image: nginx, size: -1}}",
		"{apiVersion: app.example.com/v1, kind: AppService, spec: {image: nginx, colour: red}}"
	store := s.store(component("refused", refused), component("unknown", unknown), app("good"), app("later", "refused"))
	s.report("store-good", isReady)
	store = s.awaitRows(store, "refused:Stalled", "unknown:Stalled", "good:Ready", "later:Waiting")
	for i, want := range []string{"spec.size", "spec.colour"} {
		if message := store.Status.Components[i].Message; !strings.Contains(message, want) {
			t.Errorf("%q does not say %s", message, want)
		}
	}
	s.awaitStalled(store, "Invalid", "refused: ")
	s.playUntilReady(s.change(store, app("refused"), app("unknown"), app("good"), app("later", "refused")))
	// What is there already stays as it is when it would be changed to what cannot be.
	before := s.awaitApp("store-good", exists)
	s.change(store, component("good", refused))
	s.awaitStalled(store, "Invalid", "good: ")
	if after := s.awaitApp("store-good", exists); after.UID != before.UID || after.Generation != before.Generation {
		t.Errorf("%+v", after)
	}
}

func TestWhatAComponentCannotBe(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const elsewhere = "{apiVersion: app.example.com/v1, kind: AppService, metadata: {namespace: default}, spec: {image: nginx}}"
	const same = "{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: same}, spec: {image: nginx}}"
	store := s.store(
		component("elsewhere", elsewhere), component("one", same), component("other", same),
		// The schema finds short cycles only.
		app("first"), app("a", "d"), app("b", "a"), app("c", "b"), app("d", "c", "first"), app("last", "a"),
	)
	s.report("store-first", isReady)
	store = s.awaitRows(store, "elsewhere:Stalled", "one:Stalled", "other:Stalled",
		"first:Ready", "a:Stalled", "b:Stalled", "c:Stalled", "d:Stalled", "last:Waiting")
	for i, want := range []string{
		`resource.metadata.namespace is "default"`, "one and other both define AppService same", "one and other both define AppService same",
		"", "a → d → c → b → a", "a → d → c → b → a", "a → d → c → b → a", "a → d → c → b → a",
	} {
		if message := store.Status.Components[i].Message; !strings.Contains(message, want) {
			t.Errorf("%q does not say %s", message, want)
		}
	}
	s.absent("same")
	s.absent("store-a")
	s.playUntilReady(s.change(store, component("one", same), app("first"), app("a", "first")))
}

func TestAQuietApplicationWritesNothing(t *testing.T) {
	// It counts all looks at KAPPs in this process, so nothing else may look at the same time.
	s := newStage(t)
	const labelled = `{apiVersion: app.example.com/v1, kind: AppService, metadata: {labels: {a: b}, annotations: {}, creationTimestamp: null},
	  spec: {image: nginx, envs: [{name: A, value: b}, {name: B, value: ""}], ports: [{port: 80}], minReadySeconds: 0, resources: {}, suspend: null},
	  status: {replicas: 3}}`
	store := s.playUntilReady(s.store(component("db", labelled), app("web", "db"), app("other")))
	if db := s.awaitApp("store-db", exists); db.Generation != 1 {
		t.Errorf("what was created was changed: %+v", db.ManagedFields)
	}
	written := len(s.wire.Writes())
	s.report("store-db", isOnItsWay)
	s.awaitRows(store, "db:Progressing", "web:Ready", "other:Ready")
	s.playUntilReady(store)
	for _, write := range s.wire.Writes()[written:] {
		if write != "PATCH kapps/store/status" {
			t.Errorf("it wrote: %s", write)
		}
	}

	s.stop()
	looks := fleettest.Looks(t, "KAPP")
	s.start()
	testenv.Await(t, func() string {
		if fleettest.Looks(t, "KAPP") == looks {
			return "the new manager has not looked yet"
		}
		return ""
	})
	// A second KAPP is looked at after the first, whose pass may still be on its way to a write.
	other := s.create(strings.Replace(manifest(app("web")), "name: store", "name: second", 1))
	s.playUntilReady(other)
	for _, write := range s.wire.Writes() {
		if !strings.Contains(write, "second") && write != "POST appservices" {
			t.Errorf("it wrote: %s", write)
		}
	}
}
