// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/tree"
)

// fleetLog is where the fleet logs, in the state folder of its cluster.
const fleetLog = "fleet.log"

// logPath is where the fleet logs: one file for each place that it can work in.
func logPath(t *target.Target, home string) string {
	if t.Ours {
		return filepath.Join(t.StateDir, fleetLog)
	}
	return filepath.Join(home, "fleets", t.FileName+"-"+t.Namespace+".log")
}

// namespaces returns the namespaces of the fleet: all on Opdock's clusters, and only its own on
// shared clusters.
func namespaces(t *target.Target) []string {
	if t.Ours {
		return nil
	}
	return []string{t.Namespace}
}

// watch fills the model and keeps it up to date.
func watch(ctx context.Context, t *target.Target, model *tree.Model, changes *page.Changes) error {
	from, err := treeSources()
	if err != nil {
		return err
	}
	from.Changed = changes.Observe
	from.Namespaces = namespaces(t)
	return tree.Watch(ctx, t.Config, from, model)
}

// treeSources returns the kinds of the fleet and of their children.
func treeSources() (tree.Sources, error) {
	from := tree.Sources{
		// Deployments give this label to their ReplicaSets and pods as well.
		Labels: labels.SelectorFromSet(labels.Set{flow.LabelManagedBy: flow.ManagedBy}),
		Fleet:  map[schema.GroupVersionKind]tree.Columns{},
	}
	var err error
	if from.Scheme, err = controller.NewScheme(); err != nil {
		return from, err
	}
	definitions, err := controller.CRDs(controller.Kinds)
	if err != nil {
		return from, err
	}
	children := []client.Object{&appsv1.ReplicaSet{}, &corev1.Pod{}}
	for i, kind := range controller.Kinds {
		if from.Fleet[kind.GroupVersionKind], err = tree.ColumnsOf(definitions[i], kind.Version); err != nil {
			return from, err
		}
		children = append(children, kind.Children...)
	}
	known := map[schema.GroupVersionKind]bool{}
	for _, child := range children {
		gvk, err := apiutil.GVKForObject(child, from.Scheme)
		if err != nil {
			return from, err
		}
		if _, fleet := from.Fleet[gvk]; !fleet && !known[gvk] {
			known[gvk] = true
			from.Children = append(from.Children, child)
		}
	}
	return from, nil
}
