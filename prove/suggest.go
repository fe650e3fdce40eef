// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/prove/scenario"
)

// Suggestion is a scenario file to begin with.
type Suggestion struct {
	// Text is the content of the file.
	Text []byte
	// FromSchemas means that the values are made up: the project has no samples, so they come from
	// the schemas of its CRDs.
	FromSchemas bool
	// Missing names the kinds without an object, and the reasons.
	Missing []error
}

// Suggest creates a scenario for a project: from its samples, or from the schemas of its CRDs if it has
// none.
func Suggest(ctx context.Context, dir string) (*Suggestion, error) {
	p, err := project.Find(dir)
	if err != nil {
		return nil, err
	}
	definitions, err := p.CRDs(ctx)
	if err != nil {
		return nil, err
	}
	samples, err := p.Samples(ctx)
	if err != nil {
		return nil, err
	}
	external := func() []*unstructured.Unstructured { return p.ExternalCRDs(ctx, os.Environ()) }
	if samples = servedSamples(samples, definitions, external, func(string) {}); len(samples) > 0 {
		made, err := scenario.FromSamples(samples, definitions)
		if err != nil {
			return nil, err
		}
		return &Suggestion{Text: made.Text}, nil
	}
	if len(definitions) == 0 {
		return nil, p.NoCRDs()
	}
	made, err := scenario.FromSchemas(definitions)
	if err != nil {
		return nil, err
	}
	return &Suggestion{Text: made.Text, FromSchemas: true, Missing: made.Missing}, nil
}
