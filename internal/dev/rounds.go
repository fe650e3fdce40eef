// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/project"
)

// manifests are what the project brings to a cluster.
type manifests struct {
	definitions []*unstructured.Unstructured
	webhooks    []*unstructured.Unstructured
	identity    *project.Identity // nil if the project has none
	env         []string
}

// serves says whether the operator is to be called by the API server.
func (m manifests) serves() bool {
	return len(m.webhooks) > 0 || slices.ContainsFunc(m.definitions, converts)
}

// step does one part of a round, and adds what it did to the round.
type step struct {
	name string
	kind work
	busy string
	do   func(ctx context.Context, r *Round, todo *work) error
}

// do does what is to be done. Each step takes what it has done off the list, so that a round that is cancelled, or
// fails, leaves the rest for the next.
func (s *Session) do(ctx context.Context, todo work, round Round) (result outcome) {
	steps := []step{
		{"generate", workGenerate, "generating", s.generate},
		{"build", workBuild | workManifests, "building", s.buildAndRead},
		{"flags", workFlags, "looking at its flags", s.askFlags},
		{"apply", workManifests, "applying CRDs and roles", s.applyManifests},
		{stepRestart, workRestart, "restarting", s.restart},
		{"webhooks", workWebhooks, "waiting until its webhooks are served", s.configureWebhooks},
		{"await", workAwait, "waiting until it reconciles", s.await},
		{"samples", workSamples, "applying samples", s.applySamples},
	}
	for _, one := range steps {
		if !todo.has(one.kind) {
			continue
		}
		s.Screen.Busy(one.busy)
		err := one.do(ctx, &round, &todo)
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return outcome{round: round, remaining: todo &^ workAwait, cancelled: true}
		case errors.Is(err, errEnded):
			round.Steps = append(round.Steps, Step{Name: StepRun, Text: "the operator " + s.process.how()})
			return outcome{round: round, remaining: todo &^ workAwait, crashed: true}
		}
		round.Problem = s.problem(one.name, err)
		return outcome{round: round, remaining: todo &^ workAwait}
	}
	return outcome{round: round}
}

func (s *Session) generate(ctx context.Context, round *Round, todo *work) error {
	if s.Generate == nil {
		*todo &^= workGenerate
		return nil
	}
	began := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	result, err := s.Generate(ctx, generate.Options{Dir: s.Project.Dir, Only: s.generators()})
	if errors.Is(err, generate.ErrNothing) {
		*todo &^= workGenerate
		return nil
	}
	if err != nil {
		return err
	}
	for _, one := range result.Changes {
		s.files.accept(filepath.Join(result.Dir, filepath.FromSlash(one.Path)))
	}
	*todo &^= workGenerate
	text := "nothing to generate"
	if !result.Skipped {
		text = "generated " + plural(len(result.Changes), "file", "files")
	}
	round.Steps = append(round.Steps, Step{Name: "generate", Text: text, Took: Duration(time.Since(began))})
	return nil
}

// generators are those whose results matter for running the operator. A project that is configured for opdock gets all.
// A project that keeps its manifests elsewhere than the tools' usual folders makes them in its own way.
func (s *Session) generators() []string {
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(s.Project.Dir, filepath.FromSlash(name)))
		return err == nil
	}
	if exists(generate.ConfigFileName) {
		return nil
	}
	all := []string{"deepcopy"}
	usual := s.Project.Layout == project.KubebuilderV4 || s.Project.Layout == project.KubebuilderOlder
	for _, one := range []struct{ generator, folder string }{{"crd", "config/crd"}, {"rbac", "config/rbac"}, {"webhook", "config/webhook"}} {
		if usual || exists(one.folder) {
			all = append(all, one.generator)
		}
	}
	return all
}

// buildAndRead builds the operator and, while that goes on, reads the manifests.
func (s *Session) buildAndRead(ctx context.Context, round *Round, todo *work) error {
	type read struct {
		manifests
		err error
	}
	var reading chan read
	if todo.has(workManifests) {
		reading = make(chan read, 1)
		go func() {
			found, err := s.readManifests(ctx)
			reading <- read{found, err}
		}()
	}
	if todo.has(workBuild) {
		began := time.Now()
		changed, err := s.builder.build(ctx)
		if err != nil {
			if reading != nil {
				<-reading
			}
			return err
		}
		*todo &^= workBuild
		if changed {
			*todo |= workRestart
		}
		text := "built"
		if !changed {
			text = "built the same binary"
		}
		round.Steps = append(round.Steps, Step{Name: "build", Text: text, Took: Duration(time.Since(began))})
	}
	if reading == nil {
		return nil
	}
	found := <-reading
	if found.err != nil {
		return &manifestsError{found.err}
	}
	before := s.manifests
	s.manifests = found.manifests
	if userOf(before.identity) != userOf(found.identity) || !slices.Equal(before.env, found.env) {
		*todo |= workRestart
	}
	return nil
}

// manifestsError is a manifest, or a kustomization, that cannot be read.
type manifestsError struct{ err error }

func (e *manifestsError) Error() string { return e.err.Error() }
func (e *manifestsError) Unwrap() error { return e.err }

func userOf(identity *project.Identity) string {
	if identity == nil {
		return ""
	}
	return identity.User()
}

func (s *Session) readManifests(ctx context.Context) (m manifests, err error) {
	if m.definitions, err = s.Project.CRDs(ctx); err != nil {
		return m, err
	}
	all, err := s.Project.Manifests(ctx)
	if err != nil {
		return m, err
	}
	for _, object := range all {
		switch {
		case project.IsWebhookConfiguration(object):
			m.webhooks = append(m.webhooks, object)
		case project.IsCRD(object) && converts(object):
			// The manifests may make a CRD convert that does not on its own.
			if i := slices.IndexFunc(m.definitions, func(one *unstructured.Unstructured) bool { return one.GetName() == object.GetName() }); i >= 0 {
				m.definitions[i] = object
			}
		}
	}
	if len(m.webhooks) == 0 {
		hooks, err := s.Project.Webhooks(ctx)
		if err != nil {
			return m, err
		}
		m.webhooks = hooks.Configurations
	}
	m.definitions = append(m.definitions, s.externalDefinitions(ctx)...)
	m.identity = project.IdentityIn(all)
	m.env = environmentIn(all, m.identity)
	return m, nil
}

func (s *Session) applySamples(ctx context.Context, round *Round, todo *work) error {
	samples, err := s.Project.Samples(ctx)
	if err != nil {
		return err
	}
	if len(samples) == 0 {
		*todo &^= workSamples
		round.Steps = append(round.Steps, Step{Name: "samples", Text: "the project has no samples"})
		return nil
	}
	// The user may have deleted what was applied before, and asks for it again.
	again := round.Reason == "samples" && len(round.Changed) == 0
	applied := 0
	var refused samplesError
	for _, sample := range samples {
		changed, err := s.applySample(ctx, sample, again)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			refused = append(refused, err)
		case changed:
			applied++
		}
	}
	text := plural(applied, "sample", "samples") + " applied"
	if applied == 0 && len(refused) == 0 {
		text = "samples unchanged"
	}
	round.Steps = append(round.Steps, Step{Name: "samples", Text: text})
	*todo &^= workSamples // another try with the same samples would end the same way
	if len(refused) > 0 {
		return refused
	}
	return nil
}

// samplesError are samples that could not be applied.
type samplesError []error

func (e samplesError) Error() string { return errors.Join(e...).Error() }

func (s *Session) applySample(ctx context.Context, sample *unstructured.Unstructured, again bool) (changed bool, err error) {
	placed, err := s.applier.inNamespace([]*unstructured.Unstructured{withSpec(sample)}, s.Namespace)
	if err != nil {
		return false, err
	}
	if again {
		s.applier.forget(placed)
	}
	applied, err := s.applier.apply(ctx, placed)
	return len(applied) > 0, err
}

// withSpec gives a sample whose spec is empty an empty one: kubebuilder writes samples with nothing but a comment there,
// which means null to YAML.
func withSpec(sample *unstructured.Unstructured) *unstructured.Unstructured {
	if spec, found := sample.Object["spec"]; !found || spec != nil {
		return sample
	}
	sample = sample.DeepCopy()
	sample.Object["spec"] = map[string]any{}
	return sample
}
