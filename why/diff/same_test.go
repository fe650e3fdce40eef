// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestEveryFieldIsLookedAt fills objects, changes one field after the other, and wants to be told of each.
func TestEveryFieldIsLookedAt(t *testing.T) {
	tests := map[client.Object]struct{ beyondMemory bool }{
		&appsv1.Deployment{}: {}, &corev1.Pod{}: {}, &corev1.Service{}: {}, &corev1.Node{}: {}, &networkingv1.Ingress{}: {},
		&corev1.ConfigMap{}: {beyondMemory: true}, // its binary data is a map of a kind that is not looked at
	}
	for object, test := range tests {
		t.Run(reflect.TypeOf(object).Elem().Name(), func(t *testing.T) {
			t.Parallel()
			now := reflect.ValueOf(object).Elem()
			fill(now)
			old := object.DeepCopyObject().(client.Object)
			d := Differ{MaxChanges: 16, MaxValue: 120, MaxCompared: 1 << 20}
			if found := d.Compare(old, object, false); found.Changed != 0 || sameInMemory != nil && sameInMemory(old, object) == test.beyondMemory {
				t.Fatalf("a copy is not the same: %+v", found.Changes)
			}
			fields := 0
			eachField(now, nil, func(path string) {
				fields++
				if sameInMemory != nil && sameInMemory(old, object) {
					t.Errorf("%s has changed in memory, and it is not reported", path)
				}
				found := d.Compare(old, object, false)
				if isNoise := strings.HasPrefix(path, "ObjectMeta.ManagedFields") || path == "ObjectMeta.ResourceVersion" || path == "ObjectMeta.Generation" || path == "ObjectMeta.SelfLink"; found.Changed == 0 != isNoise {
					t.Errorf("%s has changed, and is told as %+v", path, found.Changes)
				}
			})
			t.Logf("%d fields", fields)
			if d.Compare(old, object, false).Changed != 0 {
				t.Error("the test has not taken back what it did")
			}
		})
	}
}

// sameInMemory reports whether two objects are the same in memory; nil if that is not looked at.
var sameInMemory func(a, b client.Object) bool

// fill gives all fields a value.
func fill(v reflect.Value) {
	if special, ok := specialValue(v, 1); ok {
		v.Set(special)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
		v.Set(plainValue(v.Type(), 1))
	}
}

// specialValue is one of a type that is more than its parts.
func specialValue(v reflect.Value, number int) (reflect.Value, bool) {
	at := time.Unix(int64(number), 0)
	switch v.Interface().(type) {
	case metav1.Time:
		return reflect.ValueOf(metav1.NewTime(at)), true
	case metav1.MicroTime:
		return reflect.ValueOf(metav1.NewMicroTime(at)), true
	case resource.Quantity:
		return reflect.ValueOf(*resource.NewQuantity(int64(number), resource.DecimalSI)), true
	case metav1.FieldsV1:
		return reflect.ValueOf(*metav1.NewFieldsV1(fmt.Sprintf(`{"f:a%d":{}}`, number))), true
	}
	return reflect.Value{}, false
}

func plainValue(t reflect.Type, number int) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case v.CanInt():
		v.SetInt(int64(number))
	case v.CanUint():
		v.SetUint(uint64(number))
	case v.CanFloat():
		v.SetFloat(float64(number))
	case t.Kind() == reflect.Bool:
		v.SetBool(number == 1)
	case t.Kind() == reflect.String:
		v.SetString(fmt.Sprint("value", number))
	}
	return v
}

// eachField changes one value after the other, and takes that back.
func eachField(v reflect.Value, path []string, visit func(path string)) {
	change := func(to reflect.Value) {
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		v.Set(to)
		visit(strings.Join(path, "."))
		v.Set(before)
	}
	if special, ok := specialValue(v, 2); ok {
		change(special)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		change(reflect.Zero(v.Type()))
		eachField(v.Elem(), path, visit)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				eachField(v.Field(i), append(path, field.Name), visit)
			}
		}
	case reflect.Slice:
		change(reflect.Zero(v.Type()))
		eachField(v.Index(0), append(path, "0"), visit)
	case reflect.Map:
		change(reflect.Zero(v.Type()))
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			eachField(value, append(path, key.String()), func(path string) {
				before := v.MapIndex(key)
				v.SetMapIndex(key, value)
				visit(path)
				v.SetMapIndex(key, before)
			})
		}
	case reflect.Interface:
	default:
		change(plainValue(v.Type(), 2))
	}
}
