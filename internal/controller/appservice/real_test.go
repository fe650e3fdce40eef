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
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "github.com/opdock/opdock/api/app/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/config/samples"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
)

// stage is a namespace with a manager that runs AppServices in it.
type stage struct {
	client.Client

	t         *testing.T
	namespace string
	wire      *fleettest.Wire
	stop      func()
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{Client: fleettest.Client(t), t: t, namespace: clustertest.Namespace(t)}
	s.start()
	return s
}

// start starts another manager, on a wire of its own.
func (s *stage) start() {
	s.t.Helper()
	var config = fleettest.Config(s.t)
	s.wire, config = fleettest.NewWire(config)
	s.stop = fleettest.Run(s.t, config, manager.Options{Namespaces: []string{s.namespace}, Kinds: appServices()})
}

func appServices() []controller.Kind {
	return slices.DeleteFunc(slices.Clone(controller.Kinds), func(kind controller.Kind) bool { return kind.Kind != "AppService" })
}

func (s *stage) create(manifest string) *appv1.AppService {
	s.t.Helper()
	return fleettest.Create(s.t, s.Client, s.namespace, manifest, &appv1.AppService{})
}

// web creates an AppService with the name web and the given spec.
func (s *stage) web(spec string) *appv1.AppService {
	s.t.Helper()
	return s.create("{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: web}, spec: " + spec + "}")
}

func (s *stage) await(app *appv1.AppService, missing func(*appv1.AppService) string) *appv1.AppService {
	s.t.Helper()
	return fleettest.Await(s.t, s.Client, app, missing)
}

func (s *stage) awaitReady(app *appv1.AppService) *appv1.AppService {
	s.t.Helper()
	return s.await(app, ready)
}

func ready(app *appv1.AppService) string {
	return fleettest.Ready(app.Status.Conditions, app.Generation)
}

// change changes the spec.
func (s *stage) change(app *appv1.AppService, change func(*appv1.AppServiceSpec)) *appv1.AppService {
	s.t.Helper()
	before := app.DeepCopy()
	change(&app.Spec)
	if err := s.Patch(s.t.Context(), app, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
	return app
}

// child returns an object of the AppService's name, for waiting.
func child[T client.Object](s *stage, object T) T {
	object.SetNamespace(s.namespace)
	object.SetName("web")
	return object
}

func exists[T client.Object](T) string { return "" }

func TestSamplesBecomeReady(t *testing.T) {
	s := newStage(t)
	for _, name := range []string{"app_v1_appservice.yaml", "app_v1_appservice_full.yaml"} {
		manifest, err := samples.Manifests.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		app := s.awaitReady(s.create(string(manifest)))
		want := ptr.Deref(app.Spec.Size, 1)
		if got := app.Status; got.AvailableReplicas != want || got.ReadyReplicas != want || got.UpdatedReplicas != want || got.ObservedGeneration != app.Generation ||
			got.Selector == "" || got.URL == "" || !meta.IsStatusConditionTrue(got.Conditions, appv1.ConditionAvailable) {
			t.Errorf("%s: status %+v", name, got)
		}
	}
}

func TestAnApplicationNeedsFewWrites(t *testing.T) {
	s := newStage(t)
	app := s.awaitReady(s.web(`{size: 3, image: nginx, ports: [{port: 80, targetPort: 8080}]}`))
	if writes := s.wire.AllWrites(); len(writes) > 5 {
		t.Errorf("it took %d writes: %q", len(writes), writes)
	}
	// A manager that starts anew looks at everything and writes nothing. That it has looked shows when it has dealt
	// with a change that was made after its start.
	s.stop()
	s.start()
	before := len(s.wire.AllWrites())
	other := s.create(`{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: other}, spec: {image: nginx}}`)
	s.awaitReady(other)
	s.change(app, func(spec *appv1.AppServiceSpec) { spec.Suspend = true })
	s.await(app, func(app *appv1.AppService) string {
		return fleettest.Condition(app.Status.Conditions, app.Generation, sharedv1.ConditionReady, metav1.ConditionUnknown, "Suspended")
	})
	for _, write := range s.wire.Writes()[before:] {
		if !strings.Contains(write, "other") && write != "PATCH appservices/web/status" {
			t.Errorf("the new manager wrote: %s", write)
		}
	}
}

func TestFeaturesComeAndGo(t *testing.T) {
	s := newStage(t)
	app := s.awaitReady(s.web(`{image: nginx, size: 2, ports: [{port: 80}], autoscaling: {minReplicas: 2, maxReplicas: 4},
		ingress: {rules: [{host: web.example.com}]}, disruptionBudget: {maxUnavailable: 1}, networkPolicy: {from: [{podSelector: {}}]}}`))
	children := []client.Object{
		&corev1.Service{}, &autoscalingv2.HorizontalPodAutoscaler{}, &networkingv1.Ingress{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{},
	}
	for _, object := range children {
		fleettest.Await(t, s.Client, child(s, object), exists)
		if !metav1.IsControlledBy(object, app) {
			fleettest.Await(t, s.Client, object, func(o client.Object) string {
				if metav1.IsControlledBy(o, app) {
					return ""
				}
				return "it is not controlled by the AppService"
			})
		}
	}
	s.change(app, func(spec *appv1.AppServiceSpec) {
		spec.Ports, spec.Autoscaling, spec.Ingress, spec.DisruptionBudget, spec.NetworkPolicy = nil, nil, nil, nil, nil
	})
	s.awaitReady(app)
	for _, object := range children {
		fleettest.AwaitGone(t, s.Client, object)
	}
	fleettest.Await(t, s.Client, child(s, &appsv1.Deployment{}), exists)
}

func TestNobodyFightsTheAutoscaler(t *testing.T) {
	s := newStage(t)
	app := s.awaitReady(s.web(`{image: nginx, size: 3}`))
	// Turned on while there are three pods, it must not fall back to one.
	app = s.awaitReady(s.change(app, func(spec *appv1.AppServiceSpec) {
		spec.Autoscaling = &appv1.Autoscaling{MinReplicas: ptr.To[int32](2), MaxReplicas: 6}
	}))
	deployment := fleettest.Await(t, s.Client, child(s, &appsv1.Deployment{}), exists)
	if got := ptr.Deref(deployment.Spec.Replicas, 0); got != 3 {
		t.Fatalf("with the autoscaler came %d replicas", got)
	}
	// What the autoscaler does.
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	if err := s.SubResource("scale").Update(t.Context(), deployment, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	// A change of something else must not bring the old number back.
	s.await(app, func(app *appv1.AppService) string { return replicasAre(app, 5) })
	app = s.await(s.change(app, func(spec *appv1.AppServiceSpec) { spec.Image = "nginx:2" }), ready)
	deployment = fleettest.Await(t, s.Client, deployment, exists)
	if got := ptr.Deref(deployment.Spec.Replicas, 0); got != 5 {
		t.Errorf("the autoscaler's 5 became %d", got)
	}
	s.change(app, func(spec *appv1.AppServiceSpec) { spec.Autoscaling = nil })
	s.await(app, func(app *appv1.AppService) string { return replicasAre(app, 3) })
}

func replicasAre(app *appv1.AppService, want int32) string {
	if missing := ready(app); missing != "" {
		return missing
	}
	if app.Status.Replicas != want {
		return fmt.Sprintf("%d replicas", app.Status.Replicas)
	}
	return ""
}

func TestBackAndForthEndsWhereItBegan(t *testing.T) {
	s := newStage(t)
	app := s.awaitReady(s.web(`{image: "nginx:a", ports: [{port: 80}]}`))
	for round := range 10 {
		for _, image := range []string{"nginx:b", "nginx:a"} {
			s.change(app, func(spec *appv1.AppServiceSpec) {
				spec.Image = image
				spec.Strategy = &sharedv1.DeploymentStrategy{Type: []appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType}[round%2]}
			})
		}
	}
	app = s.awaitReady(app)
	deployment := fleettest.Await(t, s.Client, child(s, &appsv1.Deployment{}), exists)
	if got := deployment.Spec.Template.Spec.Containers[0].Image; got != "nginx:a" {
		t.Errorf("it is ready with %s", got)
	}
}

func TestWhatTheClusterChoseIsKept(t *testing.T) {
	s := newStage(t)
	app := s.awaitReady(s.web(`{image: nginx, ports: [{port: 80}], service: {type: NodePort}}`))
	before := fleettest.Await(t, s.Client, child(s, &corev1.Service{}), exists)
	s.change(app, func(spec *appv1.AppServiceSpec) {
		spec.Ports[0].Name = "http"
		spec.Ports = append(spec.Ports, appv1.ServicePort{Name: "more", Port: 81, Protocol: corev1.ProtocolTCP})
		spec.Service.Annotations = map[string]string{"a": "b"}
	})
	after := fleettest.Await(t, s.Client, before.DeepCopy(), func(service *corev1.Service) string {
		if len(service.Spec.Ports) != 2 || service.Annotations["a"] != "b" {
			return "it has not been changed"
		}
		return ""
	})
	if before.Spec.ClusterIP != after.Spec.ClusterIP || before.Spec.Ports[0].NodePort == 0 || before.Spec.Ports[0].NodePort != after.Spec.Ports[0].NodePort {
		t.Errorf("before: %+v\nafter: %+v", before.Spec, after.Spec)
	}
}

func TestRunsWherePodSecurityIsRestricted(t *testing.T) {
	s := newStage(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	patch := `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`
	if err := s.Patch(t.Context(), namespace, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	app := s.awaitReady(s.web(`{image: nginx}`))
	s.change(app, func(spec *appv1.AppServiceSpec) { spec.SecurityProfile = appv1.SecurityProfileAsWritten })
	app = s.await(app, func(app *appv1.AppService) string {
		return fleettest.Stalled(app.Status.Conditions, app.Generation, "FailedCreate")
	})
	if message := meta.FindStatusCondition(app.Status.Conditions, sharedv1.ConditionStalled).Message; !strings.Contains(message, "violates PodSecurity") {
		t.Error(message)
	}
}

func TestStalledInThePodsOwnWords(t *testing.T) {
	for _, test := range []struct{ name, behaviour, reason, message string }{
		{"image pull", "image-pull-error", "ImagePullBackOff", "image"},
		{"crash loop", "crash-loop", "CrashLoopBackOff", "restarting"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			app := s.web(`{image: nginx, podMetadata: {annotations: {opdock.dev/behaviour: ` + test.behaviour + `}}}`)
			app = s.await(app, func(app *appv1.AppService) string {
				return fleettest.Stalled(app.Status.Conditions, app.Generation, test.reason)
			})
			if message := meta.FindStatusCondition(app.Status.Conditions, sharedv1.ConditionStalled).Message; !strings.Contains(message, test.message) {
				t.Error(message)
			}
			s.awaitReady(s.change(app, func(spec *appv1.AppServiceSpec) { spec.PodMetadata = nil }))
		})
	}
}

func TestQuotaExceededThenRaised(t *testing.T) {
	s := newStage(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
	}
	if err := s.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	quota = fleettest.Await(t, s.Client, quota, func(q *corev1.ResourceQuota) string {
		if q.Status.Hard == nil {
			return "the quota is not in force yet"
		}
		return ""
	})
	app := s.await(s.web(`{image: nginx, size: 3}`), func(app *appv1.AppService) string {
		return fleettest.Stalled(app.Status.Conditions, app.Generation, "FailedCreate")
	})
	if message := meta.FindStatusCondition(app.Status.Conditions, sharedv1.ConditionStalled).Message; !strings.Contains(message, "exceeded quota") {
		t.Error(message)
	}
	before := quota.DeepCopy()
	quota.Spec.Hard[corev1.ResourcePods] = resource.MustParse("10")
	if err := s.Patch(t.Context(), quota, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	s.awaitReady(app)
}

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
				return "it has not been created anew"
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
	fleettest.Eventually(t, func() string {
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
