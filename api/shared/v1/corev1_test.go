// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// Controllers encode our template and decode it as the type of Kubernetes to create pods. So everything that can
// be said with ours must mean the same there.
func TestTypesAreSelectionsOfKubernetesTypes(t *testing.T) {
	for name, pair := range map[string]struct{ ours, theirs any }{
		"pod template": {&sharedv1.PodTemplate{}, &corev1.PodTemplateSpec{}},
		"strategy":     {&sharedv1.DeploymentStrategy{}, &appsv1.DeploymentStrategy{}},
	} {
		t.Run(name, func(t *testing.T) {
			ours := reflect.ValueOf(pair.ours).Elem()
			fill(t, ours, name)
			raw, err := json.Marshal(pair.ours)
			if err != nil {
				t.Fatal(err)
			}
			decoder := json.NewDecoder(bytes.NewReader(raw))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(pair.theirs); err != nil {
				t.Fatalf("Kubernetes does not know it: %v", err)
			}
			theirs, err := json.Marshal(pair.theirs)
			if err != nil {
				t.Fatal(err)
			}
			var before, after any
			if err := json.Unmarshal(raw, &before); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(theirs, &after); err != nil {
				t.Fatal(err)
			}
			requireKept(t, name, before, after)
		})
	}
}

// requireKept checks that nothing of ours is lost. Kubernetes may add empty values that it never omits.
func requireKept(t *testing.T, path string, before, after any) {
	t.Helper()
	switch before := before.(type) {
	case map[string]any:
		afterMap, _ := after.(map[string]any)
		for key, value := range before {
			requireKept(t, path+"."+key, value, afterMap[key])
		}
	case []any:
		afterList, _ := after.([]any)
		if len(afterList) != len(before) {
			t.Errorf("%s had %d items and has %d", path, len(before), len(afterList))
			return
		}
		for i := range before {
			requireKept(t, path+"[]", before[i], afterList[i])
		}
	default:
		if before != after {
			t.Errorf("%s was %v and is %v", path, before, after)
		}
	}
}

// fill sets every field below a value to something that is not its zero value.
func fill(t *testing.T, value reflect.Value, path string) {
	t.Helper()
	switch value.Interface().(type) {
	case sharedv1.Amount:
		value.SetString("5Mi")
		return
	case intstr.IntOrString:
		value.Set(reflect.ValueOf(intstr.FromString("name")))
		return
	case metav1.LabelSelector:
		value.Set(reflect.ValueOf(metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}))
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			fill(t, value.Field(i), path+"."+value.Type().Field(i).Name)
		}
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(t, value.Elem(), path)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 2, 2))
		for i := range value.Len() {
			fill(t, value.Index(i), path)
		}
	case reflect.Map:
		key, item := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(t, key, path)
		fill(t, item, path)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, item)
	case reflect.String:
		value.SetString(strings.ToLower(path[strings.LastIndex(path, ".")+1:]))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(7)
	default:
		t.Fatalf("%s is a %s, which the test cannot fill", path, value.Kind())
	}
}

// TestAmounts decodes amounts like resource.Quantity, but without an error for values that it refuses: an error prevents clients from
// listing all objects of the kind.
func TestAmounts(t *testing.T) {
	for written, want := range map[string]string{`"64Mi"`: "64Mi", `2`: "2", `"0.5"`: "500m", `"1000m"`: "1", `"1024Mi"`: "1Gi", `"1e1.5"`: "1e1.5", `"1e99999999999999999999"`: "1e99999999999999999999", `null`: ""} {
		var resources sharedv1.Resources
		if err := json.Unmarshal([]byte(`{"limits":{"memory":`+written+`}}`), &resources); err != nil {
			t.Error(err)
			continue
		}
		if got := resources.Limits[corev1.ResourceMemory]; string(got) != want {
			t.Errorf("%s is read as %q", written, got)
		}
	}
	if err := json.Unmarshal([]byte(`{"limits":{"memory":true}}`), &sharedv1.Resources{}); err == nil {
		t.Error("true is an amount")
	}
}
