// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/config/samples"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/testenv"
)

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
	began := time.Now()
	app := s.awaitReady(s.web(`{size: 3, image: nginx, ports: [{port: 80, targetPort: 8080}]}`))
	// While a rollout goes on, the status is written once in each interval.
	most := 5 + int(time.Since(began)/flow.MinorInterval)
	if writes := s.wire.AllWrites(); len(writes) > most {
		t.Errorf("it took %d writes: %q", len(writes), writes)
	}
	// A restarted manager reconciles everything and writes nothing. That it has looked shows when it has dealt
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
		if !strings.Contains(write, "other") && write != "POST deployments" && write != "PATCH appservices/web/status" {
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

func TestAutoscalerIsNotContested(t *testing.T) {
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
	s.awaitReady(app)
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
	app := s.awaitReady(s.web(`{image: nginx, securityProfile: Restricted}`))
	s.change(app, func(spec *appv1.AppServiceSpec) { spec.SecurityProfile = sharedv1.PodSecurityAsWritten })
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
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse("1"), "count/secrets": resource.MustParse("0"),
		}},
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
	// Admission reads the quota from a cache, which may have it as it was before.
	testenv.Await(t, func() string {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "too-many"}}
		if err := s.Create(t.Context(), secret, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Sprintf("a Secret gets %v", err)
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
