// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Managed fields are sets, so they do not show that the items of a list were reordered: for them, no field has changed.
// But the order of init containers and of variables that refer to each other matters. So the order in the child is compared
// with the one in the configuration. Items that are not in the configuration may be anywhere.

// inOrder reports whether a list of the child has these items in this order.
func (w *walk) inOrder(path fieldpath.Path, items []fieldpath.PathElement) bool {
	list := valueAt(w.live, path)
	if !list.IsValid() || list.Kind() != reflect.Slice {
		return true
	}
	next := 0
	for _, item := range items {
		at := indexOf(list, item, next)
		switch {
		case at >= 0:
			next = at + 1
		case indexOf(list, item, 0) >= 0:
			return false
		}
	}
	return true
}

// indexOf returns the position of an item from start on, or -1.
func indexOf(list reflect.Value, item fieldpath.PathElement, start int) int {
	for i := start; i < list.Len(); i++ {
		if hasKeys(list.Index(i), *item.Key) {
			return i
		}
	}
	return -1
}

func hasKeys(item reflect.Value, keys value.FieldList) bool {
	for _, key := range keys {
		found := fieldOf(item, key.Name)
		if !found.IsValid() {
			return false
		}
		switch wanted := key.Value.Unstructured().(type) {
		case string:
			if found.Kind() != reflect.String || found.String() != wanted {
				return false
			}
		case int64:
			if !found.CanInt() || found.Int() != wanted {
				return false
			}
		case float64:
			if !found.CanInt() || float64(found.Int()) != wanted {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// valueAt returns the value of a field of a typed object. It is not valid if there is none.
func valueAt(object reflect.Value, path fieldpath.Path) reflect.Value {
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			object = fieldOf(object, *element.FieldName)
		case element.Key != nil && object.Kind() == reflect.Slice:
			at := indexOf(object, element, 0)
			if at < 0 {
				return reflect.Value{}
			}
			object = object.Index(at)
		default:
			return reflect.Value{}
		}
		if !object.IsValid() {
			return object
		}
	}
	return object
}

// fieldOf returns the field of a struct that has the name in JSON, or the value of a map. It is not valid if there is none.
func fieldOf(object reflect.Value, name string) reflect.Value {
	object = dereferenced(object)
	if object.Kind() == reflect.Map && object.Type().Key().Kind() == reflect.String {
		return object.MapIndex(reflect.ValueOf(name).Convert(object.Type().Key()))
	}
	if object.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for i := range object.NumField() {
		field := object.Type().Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == name {
			return dereferenced(object.Field(i))
		}
		if tag == "" && field.Anonymous {
			if found := fieldOf(object.Field(i), name); found.IsValid() {
				return found
			}
		}
	}
	return reflect.Value{}
}

func dereferenced(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// maxOrders limits the memory for children whose order the server changes.
const maxOrders = 1000

// ordering identifies a configuration of a child.
type ordering struct {
	child types.UID
	hash  string
}

// keepOrder remembers that an apply did not restore the order of a child: admission changes it, so it is no drift.
func (s *shapes) keepOrder(child types.UID, hash string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.orders == nil {
		s.orders = map[ordering]bool{}
	}
	for one := range s.orders {
		if len(s.orders) < maxOrders {
			break
		}
		delete(s.orders, one)
	}
	s.orders[ordering{child, hash}] = true
}

func (s *shapes) keepsOrder(child types.UID, hash string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.orders[ordering{child, hash}]
}
