// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/internal/rights/rehearse"
	"github.com/opdock/opdock/internal/ship"
	"github.com/opdock/opdock/internal/testenv"
)

const (
	systemNamespace = "opdock-system"
	// managerUser is the service account that the manifests give the manager.
	managerUser = "system:serviceaccount:opdock-system:opdock-manager"
)

// rendered are the objects of a folder with a kustomization.
func rendered(t testing.TB, folder string) []*unstructured.Unstructured {
	t.Helper()
	data, err := ship.Installer("../../"+folder, ship.Image{})
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, data)
}

func decode(t testing.TB, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// apply does what kubectl apply --server-side does.
func apply(t testing.TB, c client.Client, objects []*unstructured.Unstructured, options ...client.ApplyOption) {
	t.Helper()
	options = append(options, client.FieldOwner("kubectl"), client.ForceOwnership)
	for _, object := range objects {
		// The first objects of a kind may come before the server serves it.
		testenv.Await(t, func() string {
			if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), options...); err != nil {
				return "applying " + object.GetKind() + " " + object.GetName() + ": " + err.Error()
			}
			return ""
		})
	}
}

// awaitRights waits until the server grants the rights of roles and bindings that were just created. It reads them from a cache.
func awaitRights(t testing.TB, c client.Client, user string, rules []rights.Rule) {
	t.Helper()
	if err := rehearse.AwaitRights(t.Context(), c, user, rules); err != nil {
		t.Fatal(err)
	}
}

// applyAll applies manifests, and returns when the manager has the rights that they grant.
func applyAll(t testing.TB, c client.Client, manifests []*unstructured.Unstructured) {
	t.Helper()
	apply(t, c, manifests)
	granted, err := rights.FromObjects(manifests)
	if err != nil {
		t.Fatal(err)
	}
	awaitRights(t, c, managerUser, granted.Rules)
}

// asManager is how the manager reaches the cluster in production, as far as its rights are concerned.
func asManager(t testing.TB) *rest.Config {
	t.Helper()
	identity, err := clustertest.Shared(t).As(managerUser)
	if err != nil {
		t.Fatal(err)
	}
	return identity.Config()
}
