// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/apply"
)

func (s *Session) applySamples(ctx context.Context, round *Round, todo *work) error {
	samples, err := s.Project.Samples(ctx)
	if err != nil {
		return err
	}
	if len(samples) == 0 {
		*todo &^= workSamples
		round.Steps = append(round.Steps, Step{Name: stepSamples, Text: "the project has no samples"})
		return nil
	}
	// The user may have deleted applied samples, and requests them again.
	again := round.Reason == "samples" && len(round.Changed) == 0
	applied := 0
	namespace := s.sampleNamespace()
	// Namespaces before the objects in them.
	slices.SortStableFunc(samples, func(a, b *unstructured.Unstructured) int { return isNamespace(b) - isNamespace(a) })
	var refused samplesError
	for _, sample := range samples {
		changed, err := s.applySample(ctx, sample, namespace, again)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			refused = append(refused, err)
		case changed:
			applied++
		}
	}
	switch {
	case applied > 0:
		round.Steps = append(round.Steps, Step{Name: stepSamples, Text: plural(applied, "sample", "samples") + " applied"})
	case len(refused) == 0:
		round.Steps = append(round.Steps, Step{Name: stepSamples, Text: "samples unchanged"})
	}
	*todo &^= workSamples // another try with the same samples would end the same way
	if len(refused) > 0 {
		return refused
	}
	return nil
}

// samplesError are samples that could not be applied.
type samplesError []error

func (e samplesError) Error() string { return errors.Join(e...).Error() }

func isNamespace(object *unstructured.Unstructured) int {
	if object.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		return 1
	}
	return 0
}

func (s *Session) applySample(ctx context.Context, sample *unstructured.Unstructured, namespace string, again bool) (changed bool, err error) {
	placed, err := s.applier.inNamespace([]*unstructured.Unstructured{withSpec(sample)}, namespace)
	if err != nil {
		return false, err
	}
	if err := s.ensureNamespace(ctx, placed[0].GetNamespace()); err != nil {
		return false, err
	}
	if again {
		s.applier.forget(placed)
	}
	applied, err := s.applier.apply(ctx, placed)
	if err == nil {
		s.sayUnwatched(placed[0], sample.GetNamespace() != "")
	}
	return len(applied) > 0, err
}

// withSpec replaces a null spec of a sample with an empty one: kubebuilder writes samples with only a comment there,
// which is null in YAML.
func withSpec(sample *unstructured.Unstructured) *unstructured.Unstructured {
	if spec, found := sample.Object["spec"]; !found || spec != nil {
		return sample
	}
	sample = sample.DeepCopy()
	sample.Object["spec"] = map[string]any{}
	return sample
}

// explainSample describes why a sample was refused, with the lines of its file that caused it.
func (s *Session) explainSample(err error) []string {
	refused := (*refusedError)(nil)
	if !errors.As(err, &refused) {
		return []string{err.Error()}
	}
	var lines []string
	for _, reason := range reasonsIn(refused.err) {
		line := refused.object.GetKind() + " " + refused.object.GetName() + ": " + reason.message
		if place, found := s.Project.SamplePlace(refused.object, reason.field); found {
			line = place.String() + ": " + line
		}
		lines = append(lines, line)
	}
	if missing := apply.MissingNamespace(refused.err); missing != "" {
		lines = append(lines, "create the namespace: kubectl create namespace "+missing)
	}
	return lines
}

// reason is one thing that is wrong with an object.
type reason struct {
	field   string // a path such as spec.ports[0].name; empty if it is about no field
	message string
}

var (
	// typedPatch is the prefix of the server's message about unknown fields. It only repeats the name of the
	// object.
	typedPatch = regexp.MustCompile(`^failed to create typed patch object \(.*?; .*?\): `)
	// fieldFirst is a line of such a message.
	fieldFirst = regexp.MustCompile(`^\s*\.([^\s:]+): `)
)

// reasonsIn takes the answer of a server apart.
func reasonsIn(err error) []reason {
	message := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		causes := status.Status().Details.Causes
		if strings.HasPrefix(message, "admission webhook ") {
			// Which of them it was is only in the message.
			whole := reason{message: message}
			if len(causes) > 0 {
				whole.field = causes[0].Field
			}
			return []reason{whole}
		}
		var reasons []reason
		for _, cause := range causes {
			text := cause.Message
			if cause.Field != "" && cause.Field != "<nil>" {
				text = cause.Field + ": " + text
			}
			reasons = append(reasons, reason{field: cause.Field, message: text})
		}
		if len(reasons) > 0 {
			return reasons
		}
	}
	rest := typedPatch.ReplaceAllString(message, "")
	var reasons []reason
	for line := range strings.Lines(strings.TrimPrefix(rest, "errors:\n")) {
		match := fieldFirst.FindStringSubmatch(line)
		if match == nil {
			return []reason{{message: rest}}
		}
		reasons = append(reasons, reason{field: match[1], message: strings.TrimSpace(line)})
	}
	return reasons
}
