// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// gcPercent is how much the heap may grow between collections during a run. Nearly everything that is allocated is a
// package that stays until the end, so that collecting more often costs time and frees little.
const gcPercent = 200

// execute runs the generators of a plan side by side and returns their files and which local files they were made from.
func execute(ctx context.Context, p *plan, progress func(Step)) (*outputs, []string, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	out := newOutputs()
	var (
		l  *loaded
		mu sync.Mutex // guards out.steps and calls of progress
	)
	done := func(step Step) {
		mu.Lock()
		defer mu.Unlock()
		out.addStep(step)
		if progress != nil {
			progress(step)
		}
	}
	err := quietly(func() error {
		staging, err := os.MkdirTemp("", "opdock-generate-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(staging)
		var group errgroup.Group
		var controllerErr, gengoErr error
		group.Go(func() error {
			controllerErr = p.runControllerGen(ctx, out, done)
			return nil
		})
		group.Go(func() error {
			l, gengoErr = p.runGengo(ctx, out, staging, done)
			return nil
		})
		_ = group.Wait() // neither returns an error; both are looked at together
		if err := p.firstCause(gengoErr, controllerErr); err != nil {
			return err
		}
		return simplify(ctx, out, staging)
	})
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(out.steps, func(a, b Step) int {
		return slices.Index(Generators, a.Generator) - slices.Index(Generators, b.Generator)
	})
	return out, l.localFiles(), nil
}

// runGengo loads the packages and runs the generators that are built on gengo.
func (p *plan) runGengo(ctx context.Context, out *outputs, staging string, done func(Step)) (*loaded, error) {
	generators := p.gengoGenerators()
	references := slices.Clone(p.references)
	for _, one := range generators {
		references = append(references, one.inputs...)
	}
	// All packages are loaded, also those for controller-gen alone: this is what finds code that does not compile.
	l, err := load(ctx, p.module, p.roots(), references)
	if err != nil {
		return nil, err
	}
	if err := p.checkClientMarkers(l); err != nil {
		return nil, err
	}
	parsers, err := newParserFactory(l)
	if err != nil {
		return nil, err
	}
	var group errgroup.Group
	errs := make([]error, len(generators))
	for i, one := range generators {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			began := time.Now()
			count, err := one.run(parsers, out, staging)
			if err != nil {
				errs[i] = p.problem(l, one.tool, err)
				return nil
			}
			done(Step{Generator: one.name, Files: count, Duration: time.Since(began)})
			return nil
		})
	}
	return l, errors.Join(group.Wait(), errors.Join(errs...))
}

// firstCause chooses what to tell: what is wrong with the source, from both sides, or else whatever failed.
func (p *plan) firstCause(errs ...error) error {
	found := problems{module: p.module}
	for _, err := range errs {
		for _, one := range flatten(err) {
			var source *Error
			if errors.As(one, &source) {
				for _, problem := range source.Problems {
					found.add(problem)
				}
			}
		}
	}
	if err := found.err(); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}

// addStep adds to the step of the same generator, since deep copies can come from two tools.
func (o *outputs) addStep(step Step) {
	for i := range o.steps {
		if o.steps[i].Generator == step.Generator {
			o.steps[i].Files += step.Files
			o.steps[i].Duration += step.Duration
			return
		}
	}
	o.steps = append(o.steps, step)
}
