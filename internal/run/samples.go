// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/config/samples"
	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/tree"
)

// Words for samples that are no names.
const (
	AllSamples = "all"
	NoSamples  = "none"
)

// Sample is one of the manifests in config/samples.
type Sample struct {
	Name   string // of its file, without the ending
	Object *unstructured.Unstructured
}

// Goal is an object that must become ready.
type Goal struct {
	Group, Kind, Namespace, Name string
	// Generation is the one that was applied.
	Generation int64
}

func (g *Goal) is(o *tree.Object) bool {
	return g.Group == o.Group && g.Kind == o.Kind && g.Namespace == o.Namespace && g.Name == o.Name
}

func readSamples() ([]Sample, error) {
	entries, err := samples.Manifests.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("reading the samples: %w", err)
	}
	var all []Sample
	for _, entry := range entries {
		data, err := samples.Manifests.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the samples: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, object); err != nil {
			return nil, fmt.Errorf("reading sample %s: %w", entry.Name(), err)
		}
		all = append(all, Sample{Name: strings.TrimSuffix(entry.Name(), ".yaml"), Object: object})
	}
	return all, nil
}

// SampleNames returns the names of all samples.
func SampleNames() []string {
	all, err := readSamples()
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(all))
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// ChooseSamples returns the samples that the user selects by names of files, kinds or objects. All excludes samples
// of older versions of a kind, which are the same objects.
func ChooseSamples(names []string) ([]Sample, error) {
	all, err := readSamples()
	if err != nil {
		return nil, err
	}
	var chosen []Sample
	for _, name := range names {
		switch strings.ToLower(name) {
		case NoSamples, "false":
			continue
		case AllSamples, "true":
			for _, s := range all {
				if !isOlderVersion(s) {
					chosen = append(chosen, s)
				}
			}
			continue
		}
		found := false
		for _, s := range all {
			byFile := name == s.Name || name == s.Name+".yaml"
			byObject := strings.EqualFold(name, s.Object.GetKind()) || name == s.Object.GetName()
			if byFile || byObject && !isOlderVersion(s) {
				found = true
				chosen = append(chosen, s)
			}
		}
		if !found {
			return nil, fmt.Errorf("sample %q does not exist", name)
		}
	}
	slices.SortStableFunc(chosen, func(a, b Sample) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(chosen, func(a, b Sample) bool { return a.Name == b.Name }), nil
}

func kindOf(s Sample) (controller.Kind, bool) {
	for _, kind := range controller.Kinds {
		if kind.GroupKind() == s.Object.GroupVersionKind().GroupKind() {
			return kind, true
		}
	}
	return controller.Kind{}, false
}

func isOlderVersion(s Sample) bool {
	kind, known := kindOf(s)
	return known && kind.Version != s.Object.GroupVersionKind().Version
}

// applySamples returns the goals, and notes about samples that were not applied.
func applySamples(ctx context.Context, t *target.Target, chosen []Sample) (goals []Goal, notes []string, err error) {
	server, err := apply.Connect(t.Config)
	if err != nil {
		return nil, nil, err
	}
	var objects []*unstructured.Unstructured
	for _, s := range chosen {
		if _, known := kindOf(s); !known {
			notes = append(notes, fmt.Sprintf("skipped sample %s: this fleet has no controller for %s", s.Name, s.Object.GetKind()))
			continue
		}
		sample := s.Object.DeepCopy()
		sample.SetNamespace(t.Namespace)
		objects = append(objects, sample)
	}
	// Who has made another thing of a sample has certainly not done so in order to lose it.
	outcomes, err := server.Apply(ctx, objects, apply.Options{Manager: apply.SamplesManager, Yield: true})
	if err != nil {
		return nil, nil, fmt.Errorf("samples: %w", err)
	}
	for _, one := range outcomes {
		if one.Action == apply.Kept {
			notes = append(notes, fmt.Sprintf("%s %s was changed after it was applied; its changes are kept", one.Kind, one.Name))
		}
		goals = append(goals, Goal{
			Group: one.Live.GroupVersionKind().Group, Kind: one.Kind, Namespace: one.Namespace, Name: one.Name, Generation: one.Live.GetGeneration(),
		})
	}
	return goals, notes, nil
}
