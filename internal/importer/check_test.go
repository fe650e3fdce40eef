// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestRefusedObjects is about objects that would keep the cluster from starting, or that no API server accepts.
func TestRefusedObjects(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 3_000_000)
	bytes := base64.StdEncoding.EncodeToString([]byte(text[:1_200_000])) // 1.6 MB here, 1.2 MB in the store
	for name, test := range map[string]struct{ document, refused string }{
		"a name":                        {`{apiVersion: v1, kind: ConfigMap, metadata: {name: INVALID_Name!!}}`, `configmaps default/INVALID_Name!!: its name is not valid: a lowercase RFC 1123`},
		"a slash":                       {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}`, `configmaps default/a/b`},
		"not ASCII":                     {`{apiVersion: v1, kind: Node, metadata: {name: worker-ä}}`, `nodes worker-ä`},
		"the node of a pod":             {`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: worker-ä}}`, `nodes worker-ä`},
		"a namespace":                   {`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: A/B}}`, `configmaps A/B/one: its namespace is not valid`},
		"the name of a namespace":       {`{apiVersion: v1, kind: Namespace, metadata: {name: a.b}}`, `namespaces a.b`},
		"of a custom resource":          {shipCRD + "\n---\n{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: 'a:b'}}", `shipz.sea.example.com default/a:b`},
		"of a role":                     {`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: 'system:Lead'}}`, ``},
		"of a role, with a slash":       {`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: 'a/b'}}`, `roles.rbac.authorization.k8s.io default/a/b`},
		"of a kind that is not known":   {`{apiVersion: image.example.com/v1, kind: Tag, metadata: {name: 'web:1', namespace: shop}}`, ``},
		"the same, with a slash":        {`{apiVersion: image.example.com/v1, kind: Tag, metadata: {name: 'a/b', namespace: shop}}`, `tags.image.example.com shop/a/b`},
		"of an object that is left out": {`{apiVersion: v1, kind: Node, metadata: {name: a}}` + "\n---\n" + `{apiVersion: v1, kind: Event, metadata: {name: A!}}`, ``},
		"too large":                     {`{apiVersion: v1, kind: ConfigMap, metadata: {name: large}, data: {x: ` + text + `}}`, `configmaps default/large has 2.86 MiB`},
		"large only as text":            {`{apiVersion: v1, kind: ConfigMap, metadata: {name: large}, binaryData: {x: ` + bytes + `}}`, ``},
		"too large, custom":             {shipCRD + "\n---\n" + `{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: large}, data: {x: ` + text[:1_600_000] + `}}`, `shipz.sea.example.com default/large has 1.53 MiB`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := dump(t, test.document)
			read, report, err := FromFiles(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Prepare(read, Options{}, report)
			switch {
			case test.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused) || !strings.Contains(err.Error(), path)):
				t.Errorf("got %v, want %s in %s", err, test.refused, path)
			}
		})
	}
}
