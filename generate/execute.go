// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// gcPercent is how much the heap may grow between collections during a run. Nearly all allocations are packages that
// live until the end, so frequent collections cost time and free little.
const gcPercent = 200

// ballastSize counts as memory in use, but is never touched and so takes no memory. Without it, a small run spends a
// tenth of its time on useless collections.
const ballastSize = 32 << 20

// loading is packages that are being loaded.
type loading struct {
	fset   *token.FileSet
	done   chan struct{}
	loaded *loaded // set when done is closed; nil if that failed
}

func (l *loading) wait() *loaded {
	<-l.done
	return l.loaded
}

// execute runs the generators of a plan concurrently, and returns their files and the hashes of the local source
// files.
func execute(ctx context.Context, p *plan, progress func(Step)) (*outputs, map[string]string, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	ballast := make([]byte, ballastSize)
	defer runtime.KeepAlive(&ballast)
	out := newOutputs()
	packages := &loading{fset: token.NewFileSet(), done: make(chan struct{})}
	var mu sync.Mutex // guards out.steps and calls of progress
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
			return fmt.Errorf("creating a working directory: %w", err)
		}
		defer os.RemoveAll(staging)
		var (
			group                   sync.WaitGroup
			controllerErr, gengoErr error
		)
		group.Go(func() { controllerErr = p.runControllerGen(ctx, packages, out, done) })
		group.Go(func() { gengoErr = p.runGengo(ctx, packages, out, staging, done) })
		group.Wait()
		if ctx.Err() != nil {
			return ctx.Err()
		}
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
	return out, packages.loaded.localFiles(), nil
}

// runGengo loads the packages and runs the generators that are built on gengo.
func (p *plan) runGengo(ctx context.Context, packages *loading, out *outputs, staging string, done func(Step)) error {
	generators := p.gengoGenerators()
	references := slices.Clone(p.references)
	for _, one := range generators {
		references = append(references, one.inputs...)
	}
	// Packages for controller-gen alone are loaded, too: this finds code that does not compile.
	l, err := load(ctx, p.module, packages.fset, p.typeRoots(), references)
	if l != nil { // even if it does not compile, to report everything at once
		err = errors.Join(err, p.checkKinds(l), p.checkClientMarkers(l))
	}
	if err == nil {
		packages.loaded = l
	}
	close(packages.done)
	if err != nil {
		return err
	}
	parsers, err := newParserFactory(l)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	errs := make([]error, len(generators))
	for i, one := range generators {
		group.Go(func() {
			if errs[i] = ctx.Err(); errs[i] != nil {
				return
			}
			began := time.Now()
			count, err := one.run(parsers, out, staging)
			if errors.Is(err, errNoCRDs) {
				return // already reported
			}
			if err != nil {
				errs[i] = p.problem(l, one.tool, err)
				return
			}
			done(Step{Generator: one.name, Files: count, Duration: time.Since(began)})
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// firstCause chooses the error to report: problems in the source from both sides, or else any other failure.
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
