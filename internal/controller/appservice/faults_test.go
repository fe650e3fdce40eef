// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "github.com/opdock/opdock/api/app/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
)

func TestDriftIsRepaired(t *testing.T) {
	s := newStage(t)
	app := s.awaitReady(s.web(`{image: nginx, ports: [{port: 80}], autoscaling: {maxReplicas: 4},
		ingress: {rules: [{host: web.example.com}]}, disruptionBudget: {maxUnavailable: 1}, networkPolicy: {from: [{podSelector: {}}]}}`))
	for _, test := range []struct {
		object client.Object
		edit   string
		intact func(client.Object) bool
	}{
		{&appsv1.Deployment{}, `{"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "evil"}]}}}}`, func(o client.Object) bool {
			return o.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image == "nginx"
		}},
		{&appsv1.Deployment{}, `{"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}`, func(o client.Object) bool {
			return o.GetLabels()["app.kubernetes.io/managed-by"] == "opdock"
		}},
		{&corev1.Service{}, `{"spec": {"selector": {"app.kubernetes.io/instance": "evil"}}}`, func(o client.Object) bool {
			return o.(*corev1.Service).Spec.Selector["app.kubernetes.io/instance"] == "web"
		}},
		{&autoscalingv2.HorizontalPodAutoscaler{}, `{"spec": {"maxReplicas": 9}}`, func(o client.Object) bool {
			return o.(*autoscalingv2.HorizontalPodAutoscaler).Spec.MaxReplicas == 4
		}},
		{&networkingv1.Ingress{}, `{"spec": {"rules": [{"host": "evil.example.com"}]}}`, func(o client.Object) bool {
			return o.(*networkingv1.Ingress).Spec.Rules[0].Host == "web.example.com"
		}},
		{&policyv1.PodDisruptionBudget{}, `{"spec": {"maxUnavailable": 9}}`, func(o client.Object) bool {
			return o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable.IntValue() == 1
		}},
		{&networkingv1.NetworkPolicy{}, `{"spec": {"ingress": []}}`, func(o client.Object) bool {
			return len(o.(*networkingv1.NetworkPolicy).Spec.Ingress) == 1
		}},
	} {
		t.Run(fmt.Sprintf("%T", test.object), func(t *testing.T) {
			object := child(s, test.object)
			if err := s.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(test.edit))); err != nil {
				t.Fatal(err)
			}
			fleettest.Await(t, s.Client, object, func(o client.Object) string {
				if test.intact(o) {
					return ""
				}
				return "the edit is still there"
			})
			uid := object.GetUID()
			if err := s.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			fleettest.Await(t, s.Client, object, func(o client.Object) string {
				if o.GetUID() != uid && test.intact(o) {
					return ""
				}
				return "it has not been recreated"
			})
		})
	}
	s.awaitReady(app)
}

func TestForeignObjectsAreSafe(t *testing.T) {
	s := newStage(t)
	foreign := child(s, &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1234}}}})
	if err := s.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	app := s.await(s.web(`{image: nginx, ports: [{port: 80}]}`), func(app *appv1.AppService) string {
		return fleettest.Stalled(app.Status.Conditions, app.Generation, "ErrResourceExists")
	})
	// What does not depend on the taken name goes on.
	fleettest.Await(t, s.Client, child(s, &appsv1.Deployment{}), exists)
	testenv.Await(t, func() string {
		var events corev1.EventList
		if err := s.List(t.Context(), &events, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
		if slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Type == "Warning" && e.Reason == "ErrResourceExists" }) {
			return ""
		}
		return "there is no warning"
	})
	after := fleettest.Await(t, s.Client, foreign.DeepCopy(), exists)
	if after.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("it was changed: %+v", after)
	}
	if err := s.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	s.awaitReady(app)
}

func TestSuspendedLeavesEverythingAsItIs(t *testing.T) {
	s := newStage(t)
	app := s.awaitReady(s.web(`{image: "nginx:a"}`))
	s.change(app, func(spec *appv1.AppServiceSpec) { spec.Suspend, spec.Image = true, "nginx:b" })
	s.await(app, func(app *appv1.AppService) string {
		return fleettest.Condition(app.Status.Conditions, app.Generation, sharedv1.ConditionReady, metav1.ConditionUnknown, "Suspended")
	})
	deployment := fleettest.Await(t, s.Client, child(s, &appsv1.Deployment{}), exists)
	if got := deployment.Spec.Template.Spec.Containers[0].Image; got != "nginx:a" {
		t.Errorf("it was changed to %s", got)
	}
	s.awaitReady(s.change(app, func(spec *appv1.AppServiceSpec) { spec.Suspend = false }))
	if deployment = fleettest.Await(t, s.Client, deployment, exists); deployment.Spec.Template.Spec.Containers[0].Image != "nginx:b" {
		t.Error("it goes on without the change")
	}
}

func TestDeletionLeavesNothingBehind(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			app := s.awaitReady(s.web(`{image: nginx, ports: [{port: 80}]}`))
			if err := s.Delete(t.Context(), app, client.PropagationPolicy(policy)); err != nil {
				t.Fatal(err)
			}
			fleettest.AwaitGone(t, s.Client, app)
			deployment := child(s, &appsv1.Deployment{})
			if policy != metav1.DeletePropagationOrphan {
				fleettest.AwaitGone(t, s.Client, deployment)
				fleettest.AwaitGone(t, s.Client, child(s, &corev1.Service{}))
				return
			}
			fleettest.Await(t, s.Client, deployment, func(d *appsv1.Deployment) string {
				if len(d.OwnerReferences) != 0 || !d.DeletionTimestamp.IsZero() {
					return "it is not an orphan"
				}
				return ""
			})
		})
	}
}

func TestAnyCrashPointIsFine(t *testing.T) {
	const before, after = `{image: "nginx:a", size: 2, ports: [{port: 80}], disruptionBudget: {maxUnavailable: 1}}`,
		`{image: "nginx:b", size: 3, ports: [{port: 81}], networkPolicy: {}}`
	var want string
	for writes := 0; ; writes++ {
		s := newStage(t)
		app := s.web(before)
		if writes > 0 {
			s.stop()
			s.crashAfter(writes)
		}
		s.awaitReady(app)
		var changed appv1.AppServiceSpec
		if err := yaml.Unmarshal([]byte(after), &changed); err != nil {
			t.Fatal(err)
		}
		var cut <-chan struct{}
		if writes > 0 {
			cut = s.wire.CutAfter(writes)
		}
		s.change(app, func(spec *appv1.AppServiceSpec) { *spec = changed })
		reached := false
		if writes > 0 {
			reached = s.restartWhenCut(app, cut)
		}
		s.awaitReady(app)
		got := s.describeChildren(app)
		if writes == 0 {
			want = got
			continue
		}
		if got != want {
			t.Errorf("killed after write %d:\n%s\nwant:\n%s", writes, got, want)
		}
		if !reached {
			break
		}
	}
}

// A correction takes two requests: the first one makes an added field ours, and the second one removes it.
func TestCorrectionsAreFinished(t *testing.T) {
	s := newStage(t)
	app := s.web(`{image: "nginx:a", networkPolicy: {}}`)
	s.awaitReady(app)
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	cut := s.wire.CutAfter(1)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"ingress": [{}]}}`))
	if err := s.Patch(t.Context(), policy.DeepCopy(), patch, client.FieldOwner("intruder")); err != nil {
		t.Fatal(err)
	}
	<-cut
	s.stop()
	s.start()
	fleettest.Await(t, s.Client, policy, func(p *networkingv1.NetworkPolicy) string {
		if len(p.Spec.Ingress) > 0 {
			return "it is still open"
		}
		return ""
	})
	s.awaitReady(app)
	testenv.Await(t, func() string {
		var events corev1.EventList
		if err := s.List(t.Context(), &events, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == "DriftCorrected" && strings.Contains(e.Message, "an earlier correction was interrupted")
		}) {
			return "no event about the correction"
		}
		return ""
	})
}

// crashAfter starts a manager that dies after the given number of writes, and another one when it is dead or the work
// is done.
func (s *stage) crashAfter(writes int) {
	s.t.Helper()
	s.start()
	cut := s.wire.CutAfter(writes)
	app := &appv1.AppService{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	s.restartWhenCut(app, cut)
}

// restartWhenCut returns whether the manager died before the AppService was ready.
func (s *stage) restartWhenCut(app *appv1.AppService, cut <-chan struct{}) bool {
	s.t.Helper()
	reached := false
	s.await(app, func(app *appv1.AppService) string {
		select {
		case <-cut:
			reached = true
			return ""
		default:
			return ready(app)
		}
	})
	s.stop()
	s.start()
	return reached
}

// describeChildren says what is there, without what differs from run to run.
func (s *stage) describeChildren(app *appv1.AppService) string {
	s.t.Helper()
	var lines []string
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
		&autoscalingv2.HorizontalPodAutoscalerList{}, &networkingv1.IngressList{},
	} {
		if err := s.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			s.t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, item := range items {
			object := item.(client.Object)
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				s.t.Fatal(err)
			}
			spec := content["spec"].(map[string]any)
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
			data, err := json.Marshal(spec)
			if err != nil {
				s.t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%T %s controlled=%v %s", object, object.GetName(), metav1.IsControlledBy(object, app), data))
		}
	}
	return strings.Join(lines, "\n")
}

func TestAnObjectOfALaxerSchema(t *testing.T) {
	s := newStage(t)
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: app.example.com/v1
kind: AppService
metadata: {name: web}
spec:
  minReadySeconds: -1
  image: ""
  ports: [{port: 0, targetPort: 99999}, {port: 0}]
  unknown: field
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace(s.namespace)
	fleettest.CreateUnchecked(t, s.Client, appServices()[0], object)
	app := &appv1.AppService{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	app = s.await(app, func(app *appv1.AppService) string {
		return fleettest.Condition(app.Status.Conditions, app.Generation, sharedv1.ConditionStalled, metav1.ConditionTrue, "")
	})
	if message := meta.FindStatusCondition(app.Status.Conditions, sharedv1.ConditionStalled).Message; !strings.Contains(message, "Invalid value") && !strings.Contains(message, "duplicate") {
		t.Error(message)
	}
}
