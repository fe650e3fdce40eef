// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"reflect"
	"unsafe"
)

// The packages that upstream's generators work on can only be made by upstream's loaders, each of which would load
// everything again. So the fields in which they keep what they have loaded are filled in from here, although they are not
// exported. Names and types of the fields are checked, and the versions are pinned by go.mod: after an update that changes
// them, every run, and so every test, says so.

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
