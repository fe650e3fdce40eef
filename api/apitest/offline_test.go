// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// The API server refuses rules that do not compile or may cost too much. This finds out in a second and without one.
func TestCRDsAreValid(t *testing.T) {
	for _, path := range crdFiles(t) {
		raw, err := json.Marshal(mustRead(t, path)[0])
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(raw, &crd); err != nil {
			t.Fatal(err)
		}
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&crd)
		var internal apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil); err != nil {
			t.Fatal(err)
		}
		for _, problem := range validation.ValidateCustomResourceDefinition(t.Context(), &internal) {
			if problem.Field != "status.storedVersions" {
				t.Errorf("%s: %v", filepath.Base(path), problem)
			}
		}
	}
}
