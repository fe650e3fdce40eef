// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "k8s.io/apimachinery/pkg/runtime"

func addDefaultingFuncs(scheme *runtime.Scheme) error { return RegisterDefaults(scheme) }

// SetDefaults_OrderSpec sets what the markers cannot.
func SetDefaults_OrderSpec(spec *OrderSpec) { //nolint:revive // the name is what the generator looks for
	if spec.Routes == nil {
		spec.Routes = map[string][]string{}
	}
}
