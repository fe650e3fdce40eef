// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeysOfListsAreRequired(t *testing.T) {
	const (
		head = "a:\n  items:\n    properties:\n      key:\n        type: string\n      name:\n        type: string\n"
		tail = "    type: object\n  type: array\n  x-kubernetes-list-map-keys:\n  - key\n  x-kubernetes-list-type: map\n"
	)
	for name, test := range map[string]struct{ content, want string }{
		"the only one":     {head + tail, head + "    required:\n    - key\n" + tail},
		"beside others":    {head + "    required:\n    - name\n" + tail, head + "    required:\n    - name\n    - key\n" + tail},
		"required already": {head + "    required:\n    - name\n    - key\n" + tail, head + "    required:\n    - name\n    - key\n" + tail},
		"with a default":   {strings.Replace(head, "key:\n", "key:\n        default: x\n", 1) + tail, strings.Replace(head, "key:\n", "key:\n        default: x\n", 1) + tail},
		"no such property": {"a:\n  items:\n" + tail, "a:\n  items:\n" + tail},
		"two keys": {
			head + strings.Replace(tail, "  - key\n", "  - name\n  - key\n", 1),
			head + "    required:\n    - name\n    - key\n" + strings.Replace(tail, "  - key\n", "  - name\n  - key\n", 1),
		},
		"no list": {head, head},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := withRequiredKeys([]byte(test.content))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// TestEmbeddedStatusIsAcceptable embeds the status of a Deployment, in whose list of conditions the key is marked optional.
func TestEmbeddedStatusIsAcceptable(t *testing.T) {
	dir := newModule(t, "testdata/corpus/single", corpus)
	writeFile(t, filepath.Join(dir, "app/v1/appservice_types.go"), `// +groupName=app.example.com
// +kubebuilder:object:generate=true
package v1

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
type AppService struct {
	metav1.TypeMeta   `+"`json:\",inline\"`"+`
	metav1.ObjectMeta `+"`json:\"metadata,omitempty\"`"+`

	Status AppServiceStatus `+"`json:\"status,omitempty\"`"+`
}

type AppServiceStatus struct {
	appsv1.DeploymentStatus `+"`json:\",inline\"`"+`
}
`)
	if _, err := Run(t.Context(), Options{Dir: dir, CacheDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "config/crd/bases/app.example.com_appservices.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "                  required:\n                  - type\n                  type: object\n"
	if !strings.Contains(string(content), want) {
		t.Errorf("the key is not required:\n%s", content)
	}
}
