// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/config/crd"
	"github.com/opdock/opdock/internal/apply"
)

// CRDs returns the CRDs of the given kinds from config/crd.
func CRDs(kinds []Kind) ([]*unstructured.Unstructured, error) {
	byName := map[string]*unstructured.Unstructured{}
	err := fs.WalkDir(crd.Bases, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		data, err := crd.Bases.ReadFile(path)
		if err != nil {
			return err
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, definition); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		byName[definition.GetName()] = definition
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs: %w", err)
	}
	var result []*unstructured.Unstructured
	for _, kind := range kinds {
		definition, ok := byName[kind.CRD()]
		if !ok {
			return nil, fmt.Errorf("no CRD found for %s", kind.Kind)
		}
		result = append(result, definition)
	}
	return result, nil
}

// Install applies the CRDs of the kinds and returns when the server serves them.
func Install(ctx context.Context, config *rest.Config, kinds []Kind) error {
	definitions, err := CRDs(kinds)
	if err != nil {
		return err
	}
	server, err := apply.Connect(config)
	if err != nil {
		return err
	}
	_, err = server.Apply(ctx, definitions, apply.Options{Manager: apply.FleetManager})
	return err
}

// Upgrade does the same on a cluster that other users share: it does not write CRDs that match,
// and returns an *apply.DowngradeError if one of them has versions or fields that this version
// lacks. It returns the names of the CRDs that it changed.
func Upgrade(ctx context.Context, config *rest.Config, kinds []Kind) (changed []string, err error) {
	definitions, err := CRDs(kinds)
	if err != nil {
		return nil, err
	}
	server, err := apply.Connect(config)
	if err != nil {
		return nil, err
	}
	outcomes, err := server.Upgrade(ctx, definitions, apply.Options{Manager: apply.FleetManager})
	for _, one := range outcomes {
		if one.Action == apply.Configured {
			changed = append(changed, one.Name)
		}
	}
	return changed, err
}
