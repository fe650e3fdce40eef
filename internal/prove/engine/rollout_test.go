// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/prove/world"
)

func TestRolloutRestart(t *testing.T) {
	for about, test := range map[string]struct {
		after func(*run, *unstructured.Unstructured) error // what the operator does
		found bool
	}{
		"the operator lets it happen": {func(*run, *unstructured.Unstructured) error { return nil }, false},
		"the operator removes the annotation": {func(r *run, web *unstructured.Unstructured) error {
			return r.change(t.Context(), web, func(live *unstructured.Unstructured) { set(live.Object, restartedAt[:4], nil) })
		}, true},
		"the operator deletes the Deployment": {func(r *run, web *unstructured.Unstructured) error {
			return r.objects.Delete(t.Context(), web.DeepCopy())
		}, false},
	} {
		t.Run(about, func(t *testing.T) {
			web := read(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {template: {metadata: {labels: {app: web}}}}}")
			key := world.Key{Group: "apps", Resource: "deployments", Kind: "Deployment", Namespace: "default", Name: "web"}
			r := &run{campaign: sailing(), objects: fake.NewClientBuilder().WithObjects(web.DeepCopy()).Build(), world: world.Of(world.State{key: web})}
			d, err := drift(r, &Plan{Family: "drift", Variant: rolloutRestart, Step: 1, Object: key.String()})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.act(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := test.after(r, web); err != nil {
				t.Fatal(err)
			}
			wrong, err := d.meanwhile(t.Context())
			if err != nil || len(wrong) > 0 != test.found {
				t.Errorf("found %+v, %v", wrong, err)
			}
			if err := d.heal(t.Context()); err != nil {
				t.Fatal(err)
			}
			if live, err := r.live(t.Context(), web); err == nil {
				if _, left, _ := unstructured.NestedString(live.Object, restartedAt...); left {
					t.Error("the annotation is left")
				}
			}
		})
	}
}
