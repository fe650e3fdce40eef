// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appv1 "github.com/opdock/opdock/api/app/v1"
	appv1alpha1 "github.com/opdock/opdock/api/app/v1alpha1"
	"github.com/opdock/opdock/cluster/clustertest"
)

const (
	appV1       = "app.example.com/v1"
	appV1alpha1 = "app.example.com/v1alpha1"
)

func TestAppServiceVersionsHaveTheSameSchema(t *testing.T) {
	crd := mustRead(t, crdFolder+"/app.example.com_appservices.yaml")[0]
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil || len(versions) != 2 {
		t.Fatalf("there are %d versions, %v", len(versions), err)
	}
	first, second := versions[0].(map[string]any), versions[1].(map[string]any)
	if first["name"] != "v1" || first["storage"] != true || second["storage"] != false || second["served"] != true {
		t.Errorf("v1 must be stored and v1alpha1 served: %v %v %v", first["name"], first["storage"], second["served"])
	}
	for _, version := range []map[string]any{first, second} {
		delete(version, "name")
		delete(version, "storage")
	}
	if !reflect.DeepEqual(first, second) {
		// The API server refuses selectable fields if they are the same in all versions but the schema is not.
		t.Error("the versions differ")
	}
}

// What is written through either version is read through the other unchanged, also by clients that only know the
// Go types.
func TestAppServiceLosesNothingBetweenVersions(t *testing.T) {
	s := realServer(t)
	for _, direction := range []struct{ write, read string }{{appV1, appV1alpha1}, {appV1alpha1, appV1}} {
		t.Run(direction.write+" to "+direction.read, func(t *testing.T) {
			namespace := clustertest.Namespace(t)
			object := fullAppService(t)
			object.SetAPIVersion(direction.write)
			written, err := s.apply(t, object, namespace)
			if err != nil {
				t.Fatal(err)
			}
			written.Object["status"] = fullAppServiceStatus(t)
			written, err = s.kind(t, written, namespace).UpdateStatus(t.Context(), written, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Fatal(err)
			}
			other := &unstructured.Unstructured{}
			other.SetAPIVersion(direction.read)
			other.SetKind("AppService")
			read, err := s.kind(t, other, namespace).Get(t.Context(), object.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"spec", "status"} {
				if !reflect.DeepEqual(written.Object[part], read.Object[part]) {
					t.Errorf("%s was written as\n%v\nand read as\n%v", part, written.Object[part], read.Object[part])
				}
			}
			requireGoRoundTrip(t, read)
		})
	}
}

// fullAppService has every field of the spec that there is: what the sample has, and what is too rare for a sample.
func fullAppService(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := patched(t, sample(t, "app_v1_appservice_full.yaml"), `
spec:
  terminationMessagePolicy: FallbackToLogsOnError
  imagePullSecrets: [{name: a}]
  priorityClassName: a
  runtimeClassName: a
  schedulerName: a
  hostNetwork: true
  securityProfile: AsWritten
  dnsPolicy: ClusterFirstWithHostNet
  hostAliases: [{ip: 127.0.0.1, hostnames: [a]}]
  enableServiceLinks: false
  suspend: true
`)
	crd := mustRead(t, crdFolder+"/app.example.com_appservices.yaml")[0]
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	properties, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if err != nil || len(properties) == 0 {
		t.Fatalf("there are %d fields in the spec, %v", len(properties), err)
	}
	for name := range properties {
		if object.Object["spec"].(map[string]any)[name] == nil {
			t.Errorf("the test does not set spec.%s", name)
		}
	}
	return object
}

// fullAppServiceStatus has every field that there is.
func fullAppServiceStatus(t *testing.T) map[string]any {
	t.Helper()
	two := int32(2)
	status := appv1.AppServiceStatus{
		ObservedGeneration: 1, Replicas: 5, UpdatedReplicas: 4, ReadyReplicas: 3, AvailableReplicas: 2, UnavailableReplicas: 1,
		TerminatingReplicas: &two, CollisionCount: &two, URL: "http://shop.example.com/", Selector: "app=shop",
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Available", Message: "all is well", ObservedGeneration: 1,
			LastTransitionTime: metav1.Unix(1700000000, 0),
		}},
	}
	value := reflect.ValueOf(status)
	for i := range value.NumField() {
		if value.Field(i).IsZero() {
			t.Fatalf("the test does not set %s", value.Type().Field(i).Name)
		}
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		t.Fatal(err)
	}
	return converted
}

// requireGoRoundTrip checks that decoding an object as the Go type of its version and encoding it again loses
// nothing.
func requireGoRoundTrip(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	var typed any = &appv1.AppService{}
	if object.GetAPIVersion() == appV1alpha1 {
		typed = &appv1alpha1.AppService{}
	}
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, typed); err != nil {
		t.Fatal(err)
	}
	again, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"spec", "status"} {
		if !sameJSON(again[part], object.Object[part]) {
			t.Errorf("%s was\n%v\nand as a Go type it is\n%v", part, object.Object[part], again[part])
		}
	}
}
