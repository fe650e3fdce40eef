// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/project"
)

// parse reads manifests, one to a document.
func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		// Numbers are what they are in objects of a server.
		encoded, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = json.Unmarshal(encoded, &object.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// fixture are the manifests of a project in testdata of package project.
func fixture(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	found, err := project.Find("../project/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := found.Manifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

func kinds(objects []*unstructured.Unstructured) string {
	var all []string
	for _, object := range objects {
		all = append(all, object.GetKind())
	}
	return strings.Join(all, " ")
}

func TestOrder(t *testing.T) {
	objects := parse(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration}
---
{apiVersion: apps/v1, kind: Deployment}
---
{apiVersion: v1, kind: Service}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding}
---
{apiVersion: v1, kind: ServiceAccount}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}
---
{apiVersion: v1, kind: Namespace}`)
	const expected = "Namespace CustomResourceDefinition ClusterRoleBinding ServiceAccount Service Deployment ValidatingWebhookConfiguration"
	if got := kinds(Order(objects)); got != expected {
		t.Errorf("they are applied as %s", got)
	}
	const deleted = "ValidatingWebhookConfiguration CustomResourceDefinition Deployment Service ServiceAccount ClusterRoleBinding Namespace"
	if got := kinds(orderOfDeletion(objects)); got != deleted {
		t.Errorf("they are deleted as %s", got)
	}
	if kinds(objects[:1]) != "ValidatingWebhookConfiguration" {
		t.Error("the input was changed")
	}
}

func TestEstablishment(t *testing.T) {
	for status, expected := range map[string]struct {
		established, refused bool
		reason               string
	}{
		`{}`: {false, false, "has not processed"},
		`{conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}`:                {true, false, ""},
		`{conditions: [{type: Established, status: "False", reason: Installing, message: soon}]}`:                   {false, false, "Installing: soon"},
		`{conditions: [{type: NamesAccepted, status: "False", reason: PluralConflict, message: "\"a\" is taken"}]}`: {false, true, "PluralConflict: \"a\" is taken"},
	} {
		definition := parse(t, "kind: CustomResourceDefinition\nstatus: "+status)[0]
		established, reason, err := establishment(definition)
		if established != expected.established || !strings.Contains(reason, expected.reason) || errors.As(err, new(*RefusedError)) != expected.refused {
			t.Errorf("%s: %v, %q, %v", status, established, reason, err)
		}
	}
}
