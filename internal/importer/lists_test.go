// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"slices"
	"testing"
)

func TestLists(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		document string
		want     []string
		leftOut  int
	}{
		"items without a kind, as the API serves them": {
			document: `{"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {"resourceVersion": "116"}, "items": [
				{"metadata": {"namespace": "shop", "name": "one"}}, {"metadata": {"namespace": "shop", "name": "two"}}]}`,
			want: []string{"deployments.apps shop/one", "deployments.apps shop/two"},
		},
		"a list in a list": {
			document: `{kind: List, apiVersion: v1, items: [
				{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: one}},
				{kind: List, apiVersion: v1, items: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: two}},
					{kind: ConfigMapList, apiVersion: v1, items: [{metadata: {namespace: shop, name: three}}]}]}]}`,
			want: []string{"configmaps shop/one", "configmaps shop/three", "configmaps shop/two"},
		},
		"a List without items":      {document: "{kind: PodList, apiVersion: v1, items: null}\n---\n{apiVersion: v1, kind: Node, metadata: {name: one}}", want: []string{"nodes one"}},
		"a List with an empty list": {document: "{kind: List, apiVersion: v1, items: [{kind: PodList, apiVersion: v1, items: []}, {apiVersion: v1, kind: Node, metadata: {name: one}}]}", want: []string{"nodes one"}},
		"items that cannot be imported": {
			document: `{kind: List, apiVersion: v1, items: [text, {metadata: {name: one}}, {apiVersion: v1, kind: Pod, metadata: {generateName: web-}},
				{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: one}}]}`,
			want:    []string{"configmaps shop/one"},
			leftOut: 3,
		},
		"no list, but an object with items": {
			document: `{kind: AllowList, apiVersion: sea.example.com/v1, metadata: {namespace: shop, name: one}, items: [{metadata: {name: two}}]}`,
			want:     []string{"allowlists.sea.example.com shop/one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, report, err := FromFiles(t.Context(), dump(t, test.document), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := names(read); !slices.Equal(got, test.want) {
				t.Errorf("got %q,\nwant %q", got, test.want)
			}
			if got := report.LeftOut["they have no kind or no name"]; got != test.leftOut {
				t.Errorf("%d are left out, want %d", got, test.leftOut)
			}
		})
	}
}
