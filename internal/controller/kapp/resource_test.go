// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	appv1 "github.com/opdock/opdock/api/app/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
)

func TestDesired(t *testing.T) {
	for _, test := range []struct {
		name, resource string
		want           string
		refusal        string
	}{
		{
			name: "the least", resource: `{apiVersion: robot.llleon.io/v1, kind: Robot, spec: null}`,
			want: `{apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {name: store-web, labels: {opdock.dev/component: web}, annotations: {opdock.dev/depends-on: "cache,db"}}}`,
		},
		{
			name: "everything that it can have",
			resource: `{apiVersion: collector.ip/v1, kind: Collector, metadata: {name: mine, namespace: shop, labels: {a: b}, annotations: {c: d}},
			  spec: {number: 3, list: [{x: null, y: 1}], nothing: null, unknown: true}, extra: {}}`,
			want: `{apiVersion: collector.ip/v1, kind: Collector, metadata: {name: mine, labels: {a: b, opdock.dev/component: web}, annotations: {c: d, opdock.dev/depends-on: "cache,db"}},
			  spec: {number: 3, list: [{y: 1}], unknown: true}, extra: {}}`,
		},
		{
			name: "as the server gives it",
			resource: `{apiVersion: kubegroup.generals.space/v1, kind: PodCluster, metadata: {name: mine, uid: u, resourceVersion: "1", generation: 2, creationTimestamp: null,
			  managedFields: [{}], generateName: mi, ownerReferences: [], labels: null}, status: {replicas: 1}}`,
			want: `{apiVersion: kubegroup.generals.space/v1, kind: PodCluster, metadata: {name: mine, labels: {opdock.dev/component: web}, annotations: {opdock.dev/depends-on: "cache,db"}}}`,
		},
		{
			name: "what is ours cannot be set", resource: `{apiVersion: app.example.com/v1, kind: AppService, metadata: {labels: {opdock.dev/component: x}, annotations: {opdock.dev/depends-on: x}}}`,
			want: `{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: store-web, labels: {opdock.dev/component: web}, annotations: {opdock.dev/depends-on: "cache,db"}}}`,
		},
		{
			name: "an older version", resource: `{apiVersion: app.example.com/v1alpha1, kind: AppService}`,
			want: `{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: store-web, labels: {opdock.dev/component: web}, annotations: {opdock.dev/depends-on: "cache,db"}}}`,
		},
		{name: "nothing", resource: ``, refusal: "not an object"},
		{name: "not an object", resource: `text`, refusal: "not an object"},
		{name: "null", resource: `null`, refusal: "a component must be"},
		{name: "no kind", resource: `{}`, refusal: "a component must be"},
		{name: "odd types", resource: `{apiVersion: 1, kind: []}`, refusal: "a component must be"},
		{name: "another kind", resource: `{apiVersion: apps/v1, kind: Deployment}`, refusal: `kind "Deployment" and apiVersion "apps/v1"`},
		{name: "itself", resource: `{apiVersion: kanggege.k8sio.com/v1, kind: KAPP}`, refusal: "a component must be"},
		{name: "a version that there is not", resource: `{apiVersion: robot.llleon.io/v1alpha1, kind: Robot}`, refusal: "a component must be"},
		{name: "elsewhere", resource: `{apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {namespace: default}}`, refusal: "metadata.namespace"},
		{name: "owners", resource: `{apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {ownerReferences: [{}]}}`, refusal: "metadata.ownerReferences"},
		{name: "finalizers", resource: `{apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {finalizers: [a/b]}}`, refusal: "metadata.finalizers"},
		{name: "a generated name", resource: `{apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {generateName: a-}}`, refusal: "metadata.generateName"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var raw []byte
			if test.resource != "" {
				raw = asJSON(t, test.resource)
			}
			component := &kappv1.Component{Name: "web", DependsOn: []string{"db", "cache", "db"}, Resource: runtime.RawExtension{Raw: raw}}
			kapp := &kappv1.KAPP{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "store"}}
			got, err := desired(kapp, component, componentKinds())
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) {
					t.Errorf("got %v, want %s", err, test.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(got.configuration)
			if err != nil {
				t.Fatal(err)
			}
			if want := string(asJSON(t, test.want)); string(data) != want {
				t.Errorf("got  %s\nwant %s", data, want)
			}
		})
	}
}

// asJSON has the fields in the order in which Go writes them.
func asJSON(t *testing.T, text string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWhatIsRecordedIsReadBack(t *testing.T) {
	object := &appv1.AppService{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{LabelComponent: "web"}, Annotations: map[string]string{AnnotationDependsOn: "cache,db"},
	}}
	if component, dependencies := recorded(object); component != "web" || strings.Join(dependencies, " ") != "cache db" {
		t.Error(component, dependencies)
	}
	if component, dependencies := recorded(&appv1.AppService{}); component != "" || len(dependencies) != 0 {
		t.Error(component, dependencies)
	}
}
