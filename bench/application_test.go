// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/flow"
)

// recordedApplication returns an application recorded from objects with fields that the server and other clients
// added.
func recordedApplication(t *testing.T) application {
	t.Helper()
	sent := func(fields string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{
			Manager: appServiceOwner, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		}}
	}
	meta := metav1.ObjectMeta{
		Name: recorded, Namespace: "default", UID: "u", ResourceVersion: "5", Labels: map[string]string{"instance": recorded},
		Annotations:     map[string]string{flow.AppliedAnnotation: "h", "others": "x"},
		OwnerReferences: []metav1.OwnerReference{{Name: recorded, UID: "owner"}},
	}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), RevisionHistoryLimit: ptr.To[int32](10),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{DNSPolicy: corev1.DNSClusterFirst, Containers: []corev1.Container{
			{Name: "app", Image: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}}},
		}}},
	}}
	deployment.ManagedFields = sent(`{"f:metadata":{"f:labels":{"f:instance":{}},"f:annotations":{"f:` + flow.AppliedAnnotation + `":{}},"f:ownerReferences":{"k:{\"uid\":\"owner\"}":{}}},
		"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:name":{},"f:image":{},
		"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}`)
	deployment.ManagedFields[0].APIVersion = "apps/v1"
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		ClusterIP: "10.0.0.1", Selector: map[string]string{"instance": recorded}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80), Protocol: corev1.ProtocolTCP}},
	}}
	service.ManagedFields = sent(`{"f:metadata":{"f:labels":{"f:instance":{}}},"f:spec":{"f:selector":{},
		"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:targetPort":{}}}}}`)
	app := appService(recorded)
	app.Status = appv1.AppServiceStatus{ObservedGeneration: 1, URL: "http://" + recorded + ".default.svc"}
	a, err := applicationFrom(app, deployment, service)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTheSameApplicationUnderAnotherName(t *testing.T) {
	one, err := recordedApplication(t).as("app-7")
	if err != nil {
		t.Fatal(err)
	}
	one.app.UID = "mine"
	children := one.children()
	deployment, service := children[0].(*appsv1.Deployment), children[1].(*corev1.Service)
	if deployment.Name != "app-7" || deployment.Labels["instance"] != "app-7" || deployment.Spec.Template.Spec.Containers[0].Image != "web" || *deployment.Spec.Replicas != 1 {
		t.Errorf("the Deployment lacks fields that the manager sent: %+v", deployment)
	}
	if deployment.Spec.RevisionHistoryLimit != nil || deployment.Spec.Template.Spec.DNSPolicy != "" || deployment.ResourceVersion != "" || len(deployment.Annotations) != 1 {
		t.Errorf("the Deployment has fields that the server or other clients added: %+v", deployment)
	}
	if service.Spec.ClusterIP != "" || service.Spec.Selector["instance"] != "app-7" || service.Spec.Ports[0].TargetPort.IntValue() != 80 {
		t.Errorf("the Service is %+v", service.Spec)
	}
	for _, child := range children {
		if owner := metav1.GetControllerOf(child); owner == nil || owner.UID != "mine" || owner.Name != "app-7" {
			t.Errorf("the owner of %T is %+v", child, owner)
		}
	}
	if one.status.URL != "http://app-7.default.svc" || one.status.ObservedGeneration != 1 {
		t.Errorf("the status is %+v", one.status)
	}
}

func TestKroDefinitionDescribesTheApplication(t *testing.T) {
	definition, err := kro{app: recordedApplication(t)}.definition()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"replicas":"${schema.spec.size}"`, `"image":"${schema.spec.image}"`, `"containerPort":"${schema.spec.port}"`, `"targetPort":"${schema.spec.port}"`,
		`"name":"${schema.metadata.name}"`, `"instance":"${schema.metadata.name}"`, `"namespace":"${schema.metadata.namespace}"`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is missing in %s", want, data)
		}
	}
	if strings.Contains(string(data), recorded) || strings.Contains(string(data), "ownerReferences") {
		t.Errorf("the definition still contains recorded values: %s", data)
	}
}

func TestWhenKroIsReady(t *testing.T) {
	for status, want := range map[string]bool{
		`{}`: false,
		`{"conditions": [{"type": "GraphResolved", "status": "True"}, {"type": "Ready", "status": "Unknown"}]}`: false,
		`{"conditions": [{"type": "GraphResolved", "status": "True"}, {"type": "Ready", "status": "True"}]}`:    true,
	} {
		instance := kroApplication("a").(*unstructured.Unstructured)
		var content map[string]any
		if err := json.Unmarshal([]byte(status), &content); err != nil {
			t.Fatal(err)
		}
		instance.Object["status"] = content
		if got := isReadyInstance(instance); got != want {
			t.Errorf("%s: %v", status, got)
		}
	}
}
