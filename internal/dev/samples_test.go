// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opdock/opdock/internal/project"
)

// What the API server says of a sample is shown with the line in the sample's file.
func TestRefusedSamples(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"config/samples/ship.yaml": `# A ship.
---
apiVersion: sea.example.com/v1
kind: Ship
metadata:
  name: argo
spec:
  crew: -1
  colour: red
`})
	s := &Session{Options: Options{Project: &project.Project{Dir: dir}}}
	sample := object(t, "{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: argo}}")
	answer := func(message string, causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusUnprocessableEntity, Message: message, Details: &metav1.StatusDetails{Causes: causes},
		}}
	}
	crew := metav1.StatusCause{Field: "spec.crew", Message: "Invalid value: -1: should be greater than or equal to 0"}
	colour := metav1.StatusCause{Field: "spec.colour", Message: "Unsupported value"}
	const typed = "failed to create typed patch object (default/argo; sea.example.com/v1, Kind=Ship): "
	const begins = "config/samples/ship.yaml:"
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"a field that the kind lacks": {answer(typed + ".spec.colour: field not declared in schema"), []string{begins + "9: Ship argo: .spec.colour: field not declared in schema"}},
		"several": {
			answer(typed + "errors:\n  .spec.colour: field not declared in schema\n  .spec.crew: expected string"),
			[]string{begins + "9: Ship argo: .spec.colour: field not declared in schema", begins + "8: Ship argo: .spec.crew: expected string"},
		},
		"the schema": {answer("Ship argo is invalid", crew, colour), []string{
			begins + "8: Ship argo: spec.crew: Invalid value: -1: should be greater than or equal to 0", begins + "9: Ship argo: spec.colour: Unsupported value",
		}},
		"a webhook": {
			answer(`admission webhook "v.example.com" denied the request: spec.crew: no ghost ships`, crew),
			[]string{begins + `8: Ship argo: admission webhook "v.example.com" denied the request: spec.crew: no ghost ships`},
		},
		"anything": {errors.New("it rained"), []string{begins + "3: Ship argo: it rained"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.problem("samples", samplesError{&refusedError{sample, test.err}})
			if !slices.Equal(got.Lines, test.want) {
				t.Errorf("got  %q\nwant %q", got.Lines, test.want)
			}
		})
	}
}
