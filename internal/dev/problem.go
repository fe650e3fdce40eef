// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/crdsource"
	"github.com/opdock/opdock/internal/deploy"
	"github.com/opdock/opdock/internal/project"
)

// problem says what went wrong in a step, and what becomes of the operator.
func (s *Session) problem(step string, err error) *Problem {
	var (
		build   *buildError
		source  *generate.Error
		refused *refusedError
		port    *PortError
		samples samplesError
		names   *deploy.RefusedError
		unread  *manifestsError
	)
	p := &Problem{Step: step}
	var what string
	switch {
	case errors.As(err, &build):
		what, p.Lines = "the build failed", build.lines()
	case errors.As(err, &source):
		what = "generating failed"
		for _, one := range source.Problems {
			p.Lines = append(p.Lines, one.String())
		}
	case errors.As(err, &samples):
		// They have nothing to do with the operator, which is up to date.
		p.Text = plural(len(samples), "sample was", "samples were") + " not accepted"
		for _, one := range samples {
			p.Lines = append(p.Lines, one.Error())
		}
		return p
	case errors.As(err, &refused):
		what = "the API server refuses " + refused.object.GetKind() + " " + refused.object.GetName()
		p.Lines = s.explainRefused(refused.object, refused.err)
	case errors.As(err, &names):
		what = "the API server refuses CustomResourceDefinition " + names.Definition.GetName()
		p.Lines = s.explainRefused(names.Definition, names.Err)
	case errors.As(err, &unread):
		p.Step, what, p.Lines = "apply", "the manifests cannot be read", strings.Split(unread.Error(), "\n")
	case errors.As(err, &port):
		what, p.Hint = port.Error(), "stop that process, then press r or save a file"
	default:
		what, p.Lines = step+" failed", strings.Split(err.Error(), "\n")
	}
	if len(p.Lines) > mostLines {
		p.Lines = p.Lines[:mostLines:mostLines]
	}
	if s.process.running() {
		what += "; the operator goes on as it was"
	}
	p.Text = what
	return p
}

// explainRefused says why an object is not accepted, and for a CRD which line of Go is to blame.
func (s *Session) explainRefused(object *unstructured.Unstructured, err error) []string {
	if !project.IsCRD(object) {
		return strings.Split(err.Error(), "\n")
	}
	var lines []string
	for _, one := range crdsource.Refusals(s.Project.Dir, object, err) {
		lines = append(lines, one.String())
	}
	return lines
}
