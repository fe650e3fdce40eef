// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is what generated apply configurations tell these types from those of the same name in other
// packages by. Nothing is served under it.
var SchemeGroupVersion = schema.GroupVersion{Group: "shared.opdock.dev", Version: "v1"}
