// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/crdsource"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/project"
)

// problem describes the failure of a step, and what happens to the operator.
func (s *Session) problem(step string, err error) *Problem {
	var (
		build   *buildError
		source  *generate.Error
		refused *refusedError
		port    *PortError
		samples samplesError
		names   *apply.RefusedError
		unread  *manifestsError
		lacks   *LackingError
		denied  *deniedError
		hooks   *notServedError
		hinted  *hint.Error
	)
	if part := (*stepError)(nil); errors.As(err, &part) {
		step = part.step
	}
	p := &Problem{Step: step}
	var what string
	switch {
	case errors.As(err, &build):
		what, p.Lines = "the build failed", build.lines()
	case errors.As(err, &source):
		what = "generating failed"
		for _, one := range source.Problems {
			p.Lines = append(p.Lines, one.String())
			if one.Generator != "" && s.process == nil {
				p.Hint = withoutGenerating
			}
		}
	case errors.As(err, &samples):
		// They have nothing to do with the operator, which is up to date.
		p.Text = plural(len(samples), "sample was", "samples were") + " not accepted"
		for _, one := range samples {
			p.Lines = append(p.Lines, s.explainSample(one)...)
		}
		p.Lines = shownLines(p.Lines)
		return p
	case errors.As(err, &lacks):
		// It runs, but for that.
		p.Step, p.Text, p.Hint = StepRun, lacks.Error(), cmp.Or(s.aboutOtherVersion(lacks.Kinds...), lackingHint)
		return p
	case errors.As(err, &hooks):
		p.Text, p.Lines = fmt.Sprintf("the operator runs, but does not serve its webhooks on port %d", hooks.port), []string{hooks.err.Error()}
		p.Hint = "if the operator has a flag that turns webhooks on or sets their port, pass it after --"
		return p
	case errors.As(err, &denied):
		p.Step, p.Text, p.Hint = StepRun, denied.Error(), deniedHint
		return p
	case errors.As(err, &refused):
		what = "the API server rejected " + refused.object.GetKind() + " " + refused.object.GetName()
		p.Lines = s.explainRefused(refused.object, refused.err)
	case errors.As(err, &names):
		what = "the API server rejected CustomResourceDefinition " + names.Definition.GetName()
		p.Lines = s.explainRefused(names.Definition, names.Err)
	case errors.As(err, &unread):
		p.Step, what, p.Lines = stepApply, "reading the manifests failed", []string{unread.Error()}
	case errors.As(err, &port):
		what, p.Hint = port.Error(), s.portHint()
	default:
		what, p.Lines = step+" failed", []string{err.Error()}
	}
	if errors.As(err, &hinted) {
		p.Hint = strings.Join(hinted.Hints, "; ")
	}
	if build == nil { // which has done it
		p.Lines = shownLines(p.Lines)
	}
	switch {
	case !s.process.running():
	case step == stepWebhooks: // after the restart
		what += "; the operator runs, but its webhooks are not all configured"
	default:
		what += "; the previous operator keeps running"
	}
	p.Text = what
	return p
}

// withoutGenerating is for projects whose types or markers only older generators accept.
const withoutGenerating = "if the project uses older versions of these generators, run it with its files as they are: opdock dev --no-generate"

// portHint explains how to free or change a port.
func (s *Session) portHint() string {
	next := "stop that process, then press r or save a file"
	if s.plan.fixedPort {
		next += "; to get a free port automatically, add a flag --" + webhookPortFlags[0] + " to the operator"
	}
	return next
}

// shownLines returns the first lines of a text: a message of the API server may have several,
// and all of them must be indented.
func shownLines(messages []string) []string {
	var lines []string
	for _, message := range messages {
		lines = append(lines, strings.Split(strings.TrimRight(message, "\n"), "\n")...)
	}
	if more := len(lines) - mostLines; more > 0 {
		lines = append(lines[:mostLines:mostLines], "… and "+plural(more, "more line", "more lines"))
	}
	return lines
}

// stepError is an error that belongs to another step of a round than the one in which it occurs.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// explainRefused describes why an object was refused, and for a CRD which line of Go caused it.
func (s *Session) explainRefused(object *unstructured.Unstructured, err error) []string {
	if !project.IsCRD(object) {
		return []string{err.Error()}
	}
	var lines []string
	for _, one := range crdsource.Refusals(s.Project.Dir, object, err) {
		lines = append(lines, one.String())
	}
	return lines
}
