// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/project"
)

// manifests holds the manifests of the project.
type manifests struct {
	definitions []*unstructured.Unstructured
	webhooks    []*unstructured.Unstructured
	identity    *project.Identity // nil if the project has none
	env         []string
	all         []*unstructured.Unstructured
	// hostname is the name of the operator's pod if the code of the operator reads the name of its host.
	hostname string
	// undeployed means that the webhooks are in the project, but not in the manifests of the operator.
	undeployed bool
}

// leavesWebhooksOut reports whether the operator may have turned its webhooks off. Conversion has to work.
func (m manifests) leavesWebhooksOut() bool {
	return m.undeployed && !slices.ContainsFunc(m.definitions, converts)
}

// serves reports whether the operator has webhooks.
func (m manifests) serves() bool {
	return len(m.webhooks) > 0 || slices.ContainsFunc(m.definitions, converts)
}

// step does one part of a round, and adds it to the report.
type step struct {
	name string
	kind work
	busy string
	do   func(ctx context.Context, r *Round, todo *work) error
}

// do does the work of a round. Each step removes its work from the list, so a canceled or failed round leaves the
// rest for the next one.
func (s *Session) do(ctx context.Context, todo work, round Round) (result outcome) {
	steps := []step{
		{"generate", workGenerate, "generating", s.generate},
		{"build", workBuild | workManifests, busyBuilding(todo), s.buildAndPrepare},
		{"ports", workRestart, "finding free ports", s.renewPorts},
		{"flags", workFlags, "reading its flags", s.askFlags},
		{stepApply, workManifests | workRestart, "applying CRDs", s.applyDefinitions},
		{stepRestart, workRestart, "restarting", s.restart},
		{stepWebhooks, workWebhooks, "waiting for its webhooks to be served", s.configureWebhooks},
		{"await", workAwait, "waiting for it to reconcile", s.await},
		{stepSamples, workSamples, "applying samples", s.applySamples},
	}
	for i := 0; i < len(steps); i++ {
		one := steps[i]
		if !todo.has(one.kind) {
			continue
		}
		s.Screen.Busy(one.busy)
		err := one.do(ctx, &round, &todo)
		if errors.Is(err, errEnded) && s.supply(ctx) {
			todo |= workRestart
			i = slices.IndexFunc(steps, func(one step) bool { return one.name == stepRestart }) - 1
			continue
		}
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return outcome{round: round, remaining: todo, cancelled: true}
		case errors.Is(err, errEnded):
			round.Steps = append(round.Steps, Step{Name: StepRun, Text: "the operator " + s.process.how()})
			return outcome{round: round, remaining: todo &^ workAwait, crashed: true}
		}
		round.Problem = s.problem(one.name, err)
		return outcome{round: round, remaining: leftAfter(one.name, todo)}
	}
	return outcome{round: round}
}

// leftAfter is what the next round does of a round that failed at a step. It awaits only an operator that this round has started.
func leftAfter(step string, todo work) work {
	if step == stepWebhooks {
		return todo
	}
	return todo &^ workAwait
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
	if !result.Skipped {
		for _, warning := range result.Warnings {
			s.Screen.Say("warning: " + warning.String())
		}
	}
	made := Step{Name: "generate", Text: generatedText(result), Took: Duration(time.Since(began))}
	for _, one := range result.Changes {
		made.Files = append(made.Files, one.Path)
	}
	written, removed := splitChanges(result.Changes)
	if len(written) > 2 {
		s.Screen.Say("generated " + strings.Join(written, ", "))
	}
	if len(removed) > 2 {
		s.Screen.Say("removed " + strings.Join(removed, ", "))
	}
	round.Steps = append(round.Steps, made)
	return nil
}

func generatedText(result *generate.Result) string {
	switch {
	case result.Skipped:
		return "nothing to generate"
	case len(result.Changes) == 0:
		return "generated files unchanged"
	}
	var texts []string
	written, removed := splitChanges(result.Changes)
	if len(written) > 0 {
		texts = append(texts, "generated "+someOf(written))
	}
	if len(removed) > 0 {
		them := "it"
		if len(removed) > 1 {
			them = "them"
		}
		texts = append(texts, "removed "+someOf(removed)+", because no type or marker generates "+them+" any more")
	}
	return strings.Join(texts, " and ")
}

// splitChanges returns the files that were written, and those that were removed because nothing generates them any more.
func splitChanges(changes []generate.Change) (written, removed []string) {
	for _, one := range changes {
		if one.Kind == generate.Leftover {
			removed = append(removed, one.Path)
		} else {
			written = append(written, one.Path)
		}
	}
	return written, removed
}

// someOf names files: one or two, or one and how many more.
func someOf(files []string) string {
	switch n := len(files); n {
	case 1:
		return files[0]
	case 2:
		return files[0] + " and " + files[1]
	default:
		return files[0] + " and " + plural(n-1, "more file", "more files")
	}
}

// generators returns the generators whose results the running operator needs. A project with an opdock.yaml gets all.
// Files that the project's Makefile does not generate are hand-written. A project with manifests outside of the usual
// folders generates them in its own way.
func (s *Session) generators() []string {
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(s.Project.Dir, filepath.FromSlash(name)))
		return err == nil
	}
	if exists(generate.ConfigFileName) {
		return nil
	}
	all := []string{"deepcopy"}
	byHand := generate.LeftOut(s.Project.Dir)
	usual := s.Project.Layout == project.KubebuilderV4 || s.Project.Layout == project.KubebuilderOlder
	for _, one := range []struct{ generator, folder string }{{"crd", "config/crd"}, {"rbac", "config/rbac"}, {"webhook", "config/webhook"}} {
		if (usual || exists(one.folder)) && !slices.Contains(byHand, one.generator) {
			all = append(all, one.generator)
		}
	}
	return all
}
