// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "github.com/opdock/opdock/api/app/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
)

// stage is a namespace with a manager that runs KAPPs in it. The controllers of the components are played by the test,
// which says by report what they would say.
type stage struct {
	client.Client

	t         *testing.T
	namespace string
	// others are further namespaces that the manager looks after.
	others []string
	kinds  []controller.Kind
	wire   *fleettest.Wire
	stop   func()
}

func newStage(t *testing.T, kinds ...string) *stage {
	t.Helper()
	s := &stage{Client: fleettest.Client(t), t: t, namespace: clustertest.Namespace(t), kinds: kindsNamed(append(kinds, "KAPP")...)}
	s.start()
	return s
}

func kindsNamed(names ...string) []controller.Kind {
	return slices.DeleteFunc(slices.Clone(controller.Kinds), func(kind controller.Kind) bool { return !slices.Contains(names, kind.Kind) })
}

// start starts another manager, on a wire of its own.
func (s *stage) start() {
	s.t.Helper()
	wire, config := fleettest.NewWire(fleettest.Config(s.t))
	s.wire, s.stop = wire, fleettest.Run(s.t, config, manager.Options{Namespaces: append(s.others, s.namespace), Kinds: s.kinds})
}

func (s *stage) create(manifest string) *kappv1.KAPP {
	s.t.Helper()
	return fleettest.Create(s.t, s.Client, s.namespace, manifest, &kappv1.KAPP{})
}

// store creates a KAPP with the name store and the given components.
func (s *stage) store(components ...string) *kappv1.KAPP {
	s.t.Helper()
	return s.create(manifest(components...))
}

func manifest(components ...string) string {
	return "{apiVersion: kanggege.k8sio.com/v1, kind: KAPP, metadata: {name: store}, spec: {components: [" + strings.Join(components, ", ") + "]}}"
}

// app is a component that is an AppService.
func app(name string, dependsOn ...string) string {
	return component(name, "{apiVersion: app.example.com/v1, kind: AppService, spec: {image: nginx}}", dependsOn...)
}

func component(name, resource string, dependsOn ...string) string {
	return fmt.Sprintf("{name: %s, dependsOn: [%s], resource: %s}", name, strings.Join(dependsOn, ", "), resource)
}

func parse(t *testing.T, components ...string) *kappv1.KAPP {
	t.Helper()
	var kapp kappv1.KAPP
	if err := yaml.UnmarshalStrict([]byte(manifest(components...)), &kapp); err != nil {
		t.Fatal(err)
	}
	return &kapp
}

// change gives the KAPP other components.
func (s *stage) change(kapp *kappv1.KAPP, components ...string) *kappv1.KAPP {
	s.t.Helper()
	return s.edit(kapp, func(kapp *kappv1.KAPP) { kapp.Spec.Components = parse(s.t, components...).Spec.Components })
}

func (s *stage) edit(kapp *kappv1.KAPP, edit func(*kappv1.KAPP)) *kappv1.KAPP {
	s.t.Helper()
	before := kapp.DeepCopy()
	edit(kapp)
	if err := s.Patch(s.t.Context(), kapp, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
	return kapp
}

func (s *stage) await(kapp *kappv1.KAPP, missing func(*kappv1.KAPP) string) *kappv1.KAPP {
	s.t.Helper()
	return fleettest.Await(s.t, s.Client, kapp, missing)
}

func (s *stage) awaitReady(kapp *kappv1.KAPP) *kappv1.KAPP {
	s.t.Helper()
	return s.await(kapp, func(kapp *kappv1.KAPP) string { return fleettest.Ready(kapp.Status.Conditions, kapp.Generation) })
}

func (s *stage) awaitStalled(kapp *kappv1.KAPP, reason, message string) *kappv1.KAPP {
	s.t.Helper()
	return s.await(kapp, func(kapp *kappv1.KAPP) string {
		if missing := fleettest.Stalled(kapp.Status.Conditions, kapp.Generation, reason); missing != "" {
			return missing
		}
		if text := meta.FindStatusCondition(kapp.Status.Conditions, sharedv1.ConditionStalled).Message; !strings.Contains(text, message) {
			return text
		}
		return ""
	})
}

// awaitRows waits until the rows of the status are these, as name:state.
func (s *stage) awaitRows(kapp *kappv1.KAPP, rows ...string) *kappv1.KAPP {
	s.t.Helper()
	return s.await(kapp, func(kapp *kappv1.KAPP) string {
		var got []string
		for _, row := range kapp.Status.Components {
			got = append(got, row.Name+":"+string(row.State))
		}
		if slices.Equal(got, rows) && kapp.Status.ObservedGeneration == kapp.Generation {
			return ""
		}
		return fmt.Sprintf("%+v", kapp.Status)
	})
}

func (s *stage) object(name string) *appv1.AppService {
	return &appv1.AppService{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
}

func (s *stage) awaitApp(name string, missing func(*appv1.AppService) string) *appv1.AppService {
	s.t.Helper()
	return fleettest.Await(s.t, s.Client, s.object(name), missing)
}

// report says what the controller of a component would say.
func (s *stage) report(name string, conditions ...metav1.Condition) {
	s.t.Helper()
	object := s.awaitApp(name, exists)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		object.Status.ObservedGeneration = object.Generation
		object.Status.Conditions = nil
		for _, condition := range conditions {
			condition.ObservedGeneration = object.Generation
			meta.SetStatusCondition(&object.Status.Conditions, condition)
		}
		return s.Status().Update(s.t.Context(), object)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

var (
	isReady    = metav1.Condition{Type: sharedv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"}
	isOnItsWay = metav1.Condition{Type: sharedv1.ConditionReady, Status: metav1.ConditionFalse, Reason: "RollingOut", Message: "1 of 2 pods"}
	isStalled  = metav1.Condition{Type: sharedv1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "CrashLoopBackOff", Message: "it keeps restarting"}
)

// absent fails if there is an AppService of that name.
func (s *stage) absent(name string) {
	s.t.Helper()
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, &appv1.AppService{}); !apierrors.IsNotFound(err) {
		s.t.Errorf("AppService %s: %v", name, err)
	}
}

func exists[T client.Object](T) string { return "" }

// play is the controllers of all components, to which everything succeeds at once. It is called
// while waiting for something else.
func (s *stage) play() {
	s.t.Helper()
	var apps appv1.AppServiceList
	if err := s.List(s.t.Context(), &apps, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	for i := range apps.Items {
		object := &apps.Items[i]
		if !object.DeletionTimestamp.IsZero() || fleettest.Ready(object.Status.Conditions, object.Generation) == "" {
			continue
		}
		object.Status.Conditions = nil
		ready := isReady
		ready.ObservedGeneration = object.Generation
		meta.SetStatusCondition(&object.Status.Conditions, ready)
		if err := s.Status().Update(s.t.Context(), object); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			s.t.Fatal(err)
		}
	}
}

// playUntilReady lets every component succeed until the KAPP is ready.
func (s *stage) playUntilReady(kapp *kappv1.KAPP) *kappv1.KAPP {
	s.t.Helper()
	return s.await(kapp, func(kapp *kappv1.KAPP) string {
		s.play()
		return fleettest.Ready(kapp.Status.Conditions, kapp.Generation)
	})
}

// patch changes an AppService as another client.
func (s *stage) patch(name, patch string) {
	s.t.Helper()
	if err := s.Patch(s.t.Context(), s.object(name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		s.t.Fatal(err)
	}
}
