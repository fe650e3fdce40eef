// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Only upstream's loaders can create the packages for upstream's generators, and each of them would load
// everything again. So this file sets the unexported fields of the loaders. It checks the names and types of the
// fields, and go.mod pins the versions: after an update that changes the fields, every run and every test fails.

// hiddenField makes an unexported field settable.
func hiddenField(of reflect.Value, name string) (reflect.Value, error) {
	field := of.FieldByName(name)
	if !field.IsValid() {
		return field, fmt.Errorf("upstream's %s no longer has a field %s", of.Type(), name)
	}
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem(), nil //nolint:gosec // see the top of this file
}

// setHidden sets an unexported field.
func setHidden(of reflect.Value, name string, value any) error {
	field, err := hiddenField(of, name)
	if err != nil {
		return err
	}
	if field.Type() != reflect.TypeOf(value) {
		return fmt.Errorf("field %s of upstream's %s is a %s and no longer a %T", name, of.Type(), field.Type(), value)
	}
	field.Set(reflect.ValueOf(value))
	return nil
}
