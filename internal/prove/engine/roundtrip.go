// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// roundTrips reads each custom resource in each served version, and writes it back unchanged. Afterwards, it must be the
// same in all versions. The cluster is a copy, so the write is real: a dry run does not show what is lost in the other
// versions.
func (r *run) roundTrips(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition, state world.State) (wrong []*Observation, err error) {
	for _, definition := range definitions {
		var served []string
		for i := range definition.Spec.Versions {
			if definition.Spec.Versions[i].Served {
				served = append(served, definition.Spec.Versions[i].Name)
			}
		}
		if len(served) < 2 { //nolint:mnd // one has nothing to be converted to
			continue
		}
		for key, object := range state {
			if key.Group != definition.Spec.Group || key.Kind != definition.Spec.Names.Kind {
				continue
			}
			for _, version := range served {
				found, err := r.roundTrip(ctx, key, object, version, served)
				if err != nil {
					return wrong, err
				}
				if found != nil {
					wrong = append(wrong, found)
					break // what is lost is lost in the other versions too
				}
			}
		}
	}
	return wrong, nil
}

func (r *run) roundTrip(ctx context.Context, key world.Key, object *unstructured.Unstructured, through string, served []string) (*Observation, error) {
	failed := func(doing string, err error) (*Observation, error) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return &Observation{
			Verdict: "admission", Severity: high, Object: key.String(), Title: fmt.Sprintf("%s cannot be %s in version %s", key, doing, through),
			Want: "it can be read and written in each version that is served", Got: firstLine(err.Error()),
		}, nil
	}
	before, err := r.inVersions(ctx, key, object, served)
	if err != nil {
		return failed("read", err)
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := r.inVersion(ctx, key, object, through)
		if err != nil {
			return err
		}
		return r.objects.Update(ctx, live, client.FieldOwner(manager))
	})
	if err != nil {
		return failed("written", err)
	}
	after, err := r.inVersions(ctx, key, object, served)
	if err != nil {
		return failed("read", err)
	}
	return unequal(key, through, served, before, after), nil
}

// unequal compares what an object was in all versions with what it is after it was written in one of them.
func unequal(key world.Key, through string, served []string, before, after map[string]*unstructured.Unstructured) *Observation {
	for _, version := range served {
		want := compare.ShapeOf(world.State{key: before[version]}, nil)
		got := compare.ShapeOf(world.State{key: after[version]}, nil)
		// A write that changes the spec raises the generation, and the operator may not have seen that yet.
		found := slices.DeleteFunc(compare.NewMask().Differences(want, got), func(d compare.Difference) bool {
			return strings.HasSuffix(d.Path, ".observedGeneration")
		})
		if len(found) == 0 {
			continue
		}
		o := &Observation{
			Verdict: "admission", Severity: high, Object: key.String(),
			Title: fmt.Sprintf("%s changes when a client reads and writes it in version %s", key, through),
		}
		o.describe(found)
		o.Want, o.Got = "in version "+version+", "+o.Want, "in version "+version+", "+o.Got
		return o
	}
	return nil
}

func (r *run) inVersions(ctx context.Context, key world.Key, object *unstructured.Unstructured, versions []string) (map[string]*unstructured.Unstructured, error) {
	all := map[string]*unstructured.Unstructured{}
	for _, version := range versions {
		one, err := r.inVersion(ctx, key, object, version)
		if err != nil {
			return nil, fmt.Errorf("version %s: %w", version, err)
		}
		all[version] = one
	}
	return all, nil
}

func (r *run) inVersion(ctx context.Context, key world.Key, object *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: key.Group, Version: version, Kind: key.Kind})
	err := r.objects.Get(ctx, client.ObjectKeyFromObject(object), found)
	return found, err
}

// describe lists the fields that differ, with the values of the first ones.
func (o *Observation) describe(found []compare.Difference) {
	var want, got []string
	for _, d := range found {
		// An empty parent says no more than what was in it.
		if slices.ContainsFunc(found, func(other compare.Difference) bool { return d.Path != "" && strings.HasPrefix(other.Path, d.Path+".") }) {
			continue
		}
		if d.Path == "" {
			want, got = append(want, d.Want), append(got, d.Got)
			continue
		}
		if len(o.Fields) < mostFields {
			o.Fields = append(o.Fields, d.Path)
		}
		want, got = append(want, d.Path+" is "+d.Want), append(got, d.Path+" is "+d.Got)
	}
	const shown = 3
	o.Want, o.Got = strings.Join(want[:min(len(want), shown)], "; "), strings.Join(got[:min(len(got), shown)], "; ")
	if more := len(want) - shown; more > 0 {
		o.Got += fmt.Sprintf("; and %d more", more)
	}
}
