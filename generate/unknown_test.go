// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"
	"testing"
)

func TestUnknownMarkers(t *testing.T) {
	for marker, want := range map[string]string{
		"kubebuilder:subresource:status":                             "",
		"kubebuilder:subresource:scale:specpath=.a,statuspath=.b":    "",
		"kubebuilder:rbac:groups=apps,resources=deployments":         "",
		"kubebuilder:rbac:groups=apps,resources=pods,verbs=get;list": "",
		"kubebuilder:validation:items:MaxLength=9":                   "",
		"kubebuilder:validation:XValidation:rule=\"self > 1\"":       "",
		"kubebuilder:printcolumn:name=Age,type=date,JSONPath=.a":     "",
		"kubebuilder:object:root=true":                               "",
		"kubebuilder:webhook:path=/mutate,mutating=true":             "",
		"kubebuilder:storageversion":                                 "",
		"kubebuilder:default=1":                                      "",
		"kubebuilder:default:={}":                                    "",
		"kubebuilder:scaffold:imports":                               "",
		"kubebuilder:docs-gen:collapse=Imports":                      "",
		"optinal":                                                    "",
		"kubebuilder:validation works without a webhook.":            "",
		"kubebuilder:validation:MinLenght 1":                         "unknown marker +kubebuilder:validation:MinLenght 1",
		"kubebuilder:subresouce:status":                              "unknown marker +kubebuilder:subresouce:status; did you mean +kubebuilder:subresource:status?",
		"kubebuilder:validation:MinLenght=1":                         "unknown marker +kubebuilder:validation:MinLenght; did you mean +kubebuilder:validation:MinLength?",
		"kubebuilder:rbca:groups=apps":                               "unknown marker +kubebuilder:rbca:groups; did you mean +kubebuilder:rbac?",
		"kubebuilder:cheese":                                         "unknown marker +kubebuilder:cheese",
	} {
		t.Run(marker, func(t *testing.T) {
			got := unknownMarkers("a.go", []byte("package a\n\n// A text.\n// +"+marker+"\n"))
			switch {
			case want == "" && len(got) > 0:
				t.Errorf("got %v", got)
			case want != "" && (len(got) != 1 || got[0].Message != want || got[0].Line != 4):
				t.Errorf("got %v, want %s", got, want)
			}
		})
	}
}

// The warning comes with each run, because nothing else shows that something is missing.
func TestWarnings(t *testing.T) {
	r := newRunner(t, plain().with("api/v2/more.go", "package v2\n\n// Hat is worn.\ntype Hat struct {\n\t// +kubebuilder:validation:MinLenght=1\n\tName string `json:\"name\"`\n}\n"))
	for range 2 {
		result := r.run()
		if len(result.Warnings) != 1 || !strings.HasPrefix(result.Warnings[0].String(), "api/v2/more.go:5:1: controller-gen: unknown marker") {
			t.Errorf("got %v", result.Warnings)
		}
	}
}
