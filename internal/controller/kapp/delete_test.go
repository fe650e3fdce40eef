// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
)

func TestDeletionGoesInReverseOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.playUntilReady(s.store(app("db"), app("web", "db")))
	s.patch("store-web", `{"metadata": {"finalizers": ["example.com/moment"]}}`)
	if err := s.Delete(t.Context(), kapp); err != nil {
		t.Fatal(err)
	}
	kapp = s.awaitRows(kapp, "db:Deleting", "web:Deleting")
	if message := kapp.Status.Components[0].Message; !strings.Contains(message, "after web") {
		t.Error(message)
	}
	if db := s.awaitApp("store-db", exists); !db.DeletionTimestamp.IsZero() {
		t.Error("db is deleted before web is gone")
	}
	s.patch("store-web", `{"metadata": {"finalizers": null}}`)
	fleettest.AwaitGone(t, s.Client, kapp)
	s.absent("store-db")
}

func TestDeletionLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		for _, running := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, manager running: %v", policy, running), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				kapp := s.playUntilReady(s.store(app("db"), app("web", "db")))
				if !running {
					s.stop()
				}
				if err := s.Delete(t.Context(), kapp, client.PropagationPolicy(policy)); err != nil {
					t.Fatal(err)
				}
				if !running {
					s.awaitGarbageCollector(kapp, policy)
					s.start()
				}
				fleettest.AwaitGone(t, s.Client, kapp)
				if policy != metav1.DeletePropagationOrphan {
					s.absent("store-db")
					s.absent("store-web")
					return
				}
				for _, name := range []string{"store-db", "store-web"} {
					s.awaitApp(name, func(app *appv1.AppService) string {
						if len(app.OwnerReferences) != 0 || !app.DeletionTimestamp.IsZero() {
							return "it is not an orphan"
						}
						return ""
					})
				}
			})
		}
	}
}

// awaitGarbageCollector waits until it has done its part for the policy.
func (s *stage) awaitGarbageCollector(kapp *kappv1.KAPP, policy metav1.DeletionPropagation) {
	s.t.Helper()
	finalizer := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents, metav1.DeletePropagationOrphan: metav1.FinalizerOrphanDependents,
	}[policy]
	s.await(kapp, func(kapp *kappv1.KAPP) string {
		if slices.Contains(kapp.Finalizers, finalizer) {
			return "the garbage collector is not done"
		}
		return ""
	})
}

// Without its finalizer, all components would be deleted at once.
func TestALostFinalizerIsAddedAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.edit(s.playUntilReady(s.store(app("web"))), func(kapp *kappv1.KAPP) { kapp.Finalizers = nil })
	s.await(kapp, func(kapp *kappv1.KAPP) string {
		if !slices.Contains(kapp.Finalizers, flow.Finalizer) {
			return "it has no finalizer"
		}
		return ""
	})
}

func TestASuspendedApplicationCanBeDeleted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.playUntilReady(s.store(app("web")))
	s.edit(kapp, func(kapp *kappv1.KAPP) { kapp.Spec.Suspend = true })
	if err := s.Delete(t.Context(), kapp); err != nil {
		t.Fatal(err)
	}
	fleettest.AwaitGone(t, s.Client, kapp)
	s.absent("store-web")
}

func TestAnApplicationGoesWithItsNamespace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kapp := s.playUntilReady(s.store(app("db"), app("web", "db")))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := s.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	fleettest.AwaitGone(t, s.Client, kapp)
	s.absent("store-db")
	s.absent("store-web")
}
