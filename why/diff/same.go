// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !opdock_unsafe

package diff

import "reflect"

// Objects are compared by reflection only. With the build tag opdock_unsafe, same_unsafe.go
// first compares memory with package unsafe, which is faster. The results are the same.

// shape is of no interest here.
type shape struct{}

func shapeOf(reflect.Type) *shape { return nil }

// memory is of no interest here.
type memory struct{}

func memoryOf(reflect.Value, reflect.Value) memory { return memory{} }

// sameState is of no interest here.
type sameState struct{} //nolint:unused // same_unsafe.go has one of use

// isSame reports whether a field is certainly equal, which is unknown before it is compared.
func (c *Comparison) isSame(*planned, memory) bool { return false }
