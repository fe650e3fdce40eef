// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
)

// dump writes a dump of one file, and returns its path.
func dump(t *testing.T, documents ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump.yaml")
	testenv.WriteFile(t, path, strings.Join(documents, "\n---\n"))
	return path
}

const (
	shipCRD = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: shipz.sea.example.com},
		spec: {group: sea.example.com, scope: Namespaced, names: {kind: Ship, plural: shipz, singular: ship, shortNames: [sh]}}}`
	seaCRD = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: seas.sea.example.com},
		spec: {group: sea.example.com, scope: Cluster, names: {kind: Sea, plural: seas}}}`
)

// TestManifestsWithoutNamespace is about objects that no API server has stored yet. Under a key without its namespace,
// an object blocks the API server for ever.
func TestManifestsWithoutNamespace(t *testing.T) {
	t.Parallel()
	const noScope = "they have no namespace, and no CRD in the dump says whether they need one"
	for name, test := range map[string]struct {
		documents []string
		options   Options
		want      []string
		leftOut   string
	}{
		"built-in kinds": {
			documents: []string{
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}`, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: one}}`,
				`{apiVersion: v1, kind: Node, metadata: {name: one}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: shop}}`,
			},
			want: []string{"configmaps default/one", "configmaps shop/two", "deployments.apps default/one", "namespaces shop", "nodes one"},
		},
		"into a namespace": {
			documents: []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: other}}`},
			options:   Options{Namespaces: []string{"shop"}},
			want:      []string{"configmaps shop/one", "namespaces shop"},
			leftOut:   "they are in other namespaces",
		},
		"two namespaces": {
			documents: []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: shop}}`},
			options:   Options{Namespaces: []string{"shop", "default"}},
			want:      []string{"configmaps default/one", "configmaps shop/two", "namespaces shop"},
		},
		"the same with and without": {
			documents: []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: default}}`},
			want:      []string{"configmaps default/one"},
		},
		"a namespace that the kind does not have": {
			documents: []string{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: one, namespace: shop}}`},
			want:      []string{"clusterroles.rbac.authorization.k8s.io one"},
		},
		"custom resources": {
			documents: []string{
				`{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: ada}}`, shipCRD,
				`{apiVersion: sea.example.com/v1, kind: Sea, metadata: {name: red}}`, seaCRD,
			},
			want: []string{
				"customresourcedefinitions.apiextensions.k8s.io seas.sea.example.com", "customresourcedefinitions.apiextensions.k8s.io shipz.sea.example.com",
				"seas.sea.example.com red", "shipz.sea.example.com default/ada",
			},
		},
		"a custom resource without a CRD": {
			documents: []string{`{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: ada}}`, `{apiVersion: v1, kind: Node, metadata: {name: one}}`},
			want:      []string{"nodes one"},
			leftOut:   noScope,
		},
		"without a CRD, from a cluster": { // which stores a namespace if the kind has one
			documents: []string{`{apiVersion: sea.example.com/v1, kind: Sea, metadata: {name: red, uid: s1}}`},
			want:      []string{"seas.sea.example.com red"},
		},
		"without a CRD, but another has a namespace": {
			documents: []string{`{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: ada}}`, `{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: eva, namespace: shop}}`},
			want:      []string{"namespaces shop", "ships.sea.example.com default/ada", "ships.sea.example.com shop/eva"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, report, err := FromFiles(t.Context(), dump(t, test.documents...), test.options)
			if err != nil {
				t.Fatal(err)
			}
			kept := prepare(t, read, test.options, report)
			if got := names(kept); !slices.Equal(got, test.want) {
				t.Errorf("got %q,\nwant %q", got, test.want)
			}
			if (test.leftOut == "") != (len(report.LeftOut) == 0) || (test.leftOut != "" && report.LeftOut[test.leftOut] != 1) {
				t.Errorf("left out %q, want %q", Lines(report.LeftOut), test.leftOut)
			}
		})
	}
}

// TestBuiltInKinds compares the list of built-in kinds with what the control plane serves.
func TestBuiltInKinds(t *testing.T) {
	testenv.ControlPlane(t)
	client, err := discovery.NewDiscoveryClientForConfig(clustertest.Shared(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	served, err := client.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	known := builtInKinds()
	count := 0
	for _, list := range served {
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || strings.HasPrefix(list.GroupVersion, "metrics.k8s.io/") {
				continue
			}
			count++
			gvk := schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind)
			got, found := known[gvk.GroupKind()]
			if !found || got.Name != r.Name || got.Namespaced != r.Namespaced || got.SingularName != r.SingularName || !slices.Equal(got.ShortNames, r.ShortNames) {
				t.Errorf("%s: the list has %+v,\nserved is %+v", gvk.GroupKind(), got.APIResource, r)
			}
		}
	}
	if count != len(known) {
		t.Errorf("%d kinds are served, the list has %d", count, len(known))
	}
}
