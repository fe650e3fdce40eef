// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/crdspec"
)

// DowngradeError is returned when a CRD on the server has versions or fields that the one to be applied lacks. The server
// would drop these fields from all objects of the kind.
type DowngradeError struct {
	Definition string
	// Lacking are versions such as v2, and fields such as v1 spec.size.
	Lacking []string
}

// shownFields is how many fields a message names.
const shownFields = 3

func (e *DowngradeError) Error() string {
	shown := e.Lacking
	more := ""
	if len(shown) > shownFields {
		shown, more = shown[:shownFields], fmt.Sprintf(" and %d more", len(shown)-shownFields)
	}
	return fmt.Sprintf("CRD %s on the server is of another version: replacing it would drop %s%s", e.Definition, strings.Join(shown, ", "), more)
}

// Upgrade applies CRDs to a shared cluster. CRDs that match are not written. If a live CRD has
// versions or fields that the new one lacks, nothing is applied and a *DowngradeError is
// returned. Upgrade returns when the kinds can be used.
func (s *Server) Upgrade(ctx context.Context, definitions []*unstructured.Unstructured, o Options) ([]Outcome, error) {
	for _, definition := range definitions {
		live := empty(definition)
		err := s.client.Get(ctx, client.ObjectKeyFromObject(definition), live)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", title(definition), err)
		}
		if lacking := lackingIn(definition, live); len(lacking) > 0 {
			return nil, &DowngradeError{Definition: definition.GetName(), Lacking: lacking}
		}
	}
	dry := o
	dry.DryRun = true
	outcomes, err := s.Apply(ctx, definitions, dry)
	if err != nil {
		return nil, err
	}
	differ := slices.DeleteFunc(slices.Clone(definitions), func(definition *unstructured.Unstructured) bool {
		return slices.ContainsFunc(outcomes, func(one Outcome) bool { return one.Name == definition.GetName() && one.Action == Unchanged })
	})
	if _, err := s.Apply(ctx, differ, o); err != nil {
		return nil, err
	}
	return outcomes, s.AwaitEstablished(ctx, definitions)
}

// lackingIn are the versions and fields that a live CRD has and the given one has not.
func lackingIn(definition, live *unstructured.Unstructured) []string {
	ours := versionsByName(definition)
	var lacking []string
	theirs := versionsByName(live)
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		version, found := ours[name]
		if !found {
			lacking = append(lacking, "version "+name)
			continue
		}
		for _, field := range lackingFields(schemaOf(version), schemaOf(theirs[name]), "") {
			lacking = append(lacking, name+" "+field)
		}
	}
	return lacking
}

func versionsByName(definition *unstructured.Unstructured) map[string]map[string]any {
	byName := map[string]map[string]any{}
	for _, version := range crdspec.Of(definition).Versions {
		byName[version.Name] = version.Fields
	}
	return byName
}

func schemaOf(version map[string]any) map[string]any {
	schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	return schema
}

// lackingFields are the paths of the fields that their schema has and ours has not. Where ours keeps everything, nothing is
// lacking.
func lackingFields(ours, theirs map[string]any, path string) []string {
	if ours["x-kubernetes-preserve-unknown-fields"] == true {
		return nil
	}
	var lacking []string
	our, _ := ours["properties"].(map[string]any)
	their, _ := theirs["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(their)) {
		below := strings.TrimPrefix(path+"."+name, ".")
		field, found := our[name].(map[string]any)
		if !found {
			lacking = append(lacking, below)
			continue
		}
		other, _ := their[name].(map[string]any)
		lacking = append(lacking, lackingFields(field, other, below)...)
	}
	for keyword, suffix := range map[string]string{"items": "[]", "additionalProperties": "[*]"} {
		our, _ := ours[keyword].(map[string]any)
		their, _ := theirs[keyword].(map[string]any)
		if our != nil && their != nil {
			lacking = append(lacking, lackingFields(our, their, path+suffix)...)
		}
	}
	return lacking
}
