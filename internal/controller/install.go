// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/config/crd"
)

// CRDs are the definitions of the given kinds, as they are in config/crd.
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
			return nil, fmt.Errorf("there is no CRD for %s", kind.Kind)
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
	applier, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, definition := range definitions {
		err := applier.Apply(ctx, client.ApplyConfigurationFromUnstructured(definition), client.FieldOwner("opdock"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("installing CRD %s: %w", definition.GetName(), err)
		}
	}
	return awaitServed(ctx, config, kinds)
}

// awaitServed asks for the resources themselves: a CRD is Established a moment before they can be used.
func awaitServed(ctx context.Context, config *rest.Config, kinds []Kind) error {
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, kind := range kinds {
		err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
			return serves(server, kind.GroupVersionKind, kind.Plural), nil
		})
		if err != nil {
			return fmt.Errorf("waiting until %s is served: %w", kind.CRD(), err)
		}
	}
	return nil
}

func serves(server discovery.DiscoveryInterface, gvk schema.GroupVersionKind, plural string) bool {
	list, err := server.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		return false
	}
	for _, resource := range list.APIResources {
		if resource.Name == plural {
			return true
		}
	}
	return false
}
