// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	kappv1 "github.com/opdock/opdock/api/kapp/v1"
)

func parse(t *testing.T, components ...string) *kappv1.KAPP {
	t.Helper()
	var kapp kappv1.KAPP
	if err := yaml.UnmarshalStrict([]byte(manifest(components...)), &kapp); err != nil {
		t.Fatal(err)
	}
	return &kapp
}
