// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/config/samples"
	"github.com/opdock/opdock/internal/controller"
)

// Words for samples that are no names.
const (
	samplesAll  = "all"
	samplesNone = "none"
)

// samplesOwner is the field manager that applies samples.
const samplesOwner = "opdock-run"

// sample is one of the manifests in config/samples.
type sample struct {
	name   string // of its file, without the ending
	object *unstructured.Unstructured
}

// goal is an object that has to become ready.
type goal struct {
	group, kind, namespace, name string
	generation                   int64
}

func allSamples() ([]sample, error) {
	entries, err := samples.Manifests.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("reading the samples: %w", err)
	}
	var all []sample
	for _, entry := range entries {
		data, err := samples.Manifests.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the samples: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, object); err != nil {
			return nil, fmt.Errorf("reading sample %s: %w", entry.Name(), err)
		}
		all = append(all, sample{name: strings.TrimSuffix(entry.Name(), ".yaml"), object: object})
	}
	return all, nil
}

func sampleNames() []string {
	all, err := allSamples()
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(all))
	for _, s := range all {
		names = append(names, s.name)
	}
	return names
}

// chooseSamples returns those that the user means by names of files, kinds or objects. All does not mean those of older
// versions of a kind, which are the same objects once more.
func chooseSamples(names []string) ([]sample, error) {
	all, err := allSamples()
	if err != nil {
		return nil, err
	}
	var chosen []sample
	for _, name := range names {
		switch strings.ToLower(name) {
		case samplesNone, "false":
			continue
		case samplesAll, "true":
			for _, s := range all {
				if !isOlderVersion(s) {
					chosen = append(chosen, s)
				}
			}
			continue
		}
		found := false
		for _, s := range all {
			byFile := name == s.name || name == s.name+".yaml"
			byObject := strings.EqualFold(name, s.object.GetKind()) || name == s.object.GetName()
			if byFile || byObject && !isOlderVersion(s) {
				found = true
				chosen = append(chosen, s)
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no sample %q", name)
		}
	}
	slices.SortStableFunc(chosen, func(a, b sample) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(chosen, func(a, b sample) bool { return a.name == b.name }), nil
}

func kindOf(s sample) (controller.Kind, bool) {
	for _, kind := range controller.Kinds {
		if kind.GroupKind() == s.object.GroupVersionKind().GroupKind() {
			return kind, true
		}
	}
	return controller.Kind{}, false
}

func isOlderVersion(s sample) bool {
	kind, known := kindOf(s)
	return known && kind.Version != s.object.GroupVersionKind().Version
}

// applySamples returns what has to become ready, and what the user should know about samples that were not applied.
func (r *fleetRun) applySamples(ctx context.Context, chosen []sample) (goals []goal, notes []string, err error) {
	server, err := client.New(r.target.Config, client.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("making a client: %w", err)
	}
	for _, s := range chosen {
		gvk := s.object.GroupVersionKind()
		if _, known := kindOf(s); !known {
			notes = append(notes, fmt.Sprintf("sample %s is left out: this fleet has no controller for %s", s.name, gvk.Kind))
			continue
		}
		live := s.object.DeepCopy()
		live.SetNamespace(r.target.Namespace)
		err := server.Apply(ctx, client.ApplyConfigurationFromUnstructured(live), client.FieldOwner(samplesOwner))
		if apierrors.IsConflict(err) {
			// Somebody has made another thing of it, and certainly not in order to lose it.
			notes = append(notes, fmt.Sprintf("%s %s has been changed since it was applied, and is left so", gvk.Kind, s.object.GetName()))
			live.SetGroupVersionKind(gvk)
			err = server.Get(ctx, client.ObjectKey{Namespace: r.target.Namespace, Name: s.object.GetName()}, live)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("applying sample %s: %w", s.name, err)
		}
		goals = append(goals, goal{
			group: gvk.Group, kind: gvk.Kind, namespace: r.target.Namespace, name: live.GetName(), generation: live.GetGeneration(),
		})
	}
	return goals, notes, nil
}
