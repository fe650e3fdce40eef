// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/project"
)

// parse reads manifests, one to a document.
func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
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

const workload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  template:
    spec:
      containers: `

func TestTheOperatorsImage(t *testing.T) {
	for containers, expected := range map[string]string{
		`[{name: any, image: old}]`:                                             "new",
		`[{name: proxy, image: proxy}, {name: manager, image: old}]`:            "proxy new",
		`[{name: proxy, image: proxy}, {name: op, image: "controller:latest"}]`: "proxy new",
	} {
		manifests := parse(t, workload+containers)
		changed, err := WithImage(manifests, "new")
		if err != nil {
			t.Errorf("%s: %v", containers, err)
			continue
		}
		var images []string
		for _, container := range project.Containers(changed[0]) {
			images = append(images, container["image"].(string))
		}
		if got := strings.Join(images, " "); got != expected {
			t.Errorf("%s: the images are %s", containers, got)
		}
		if image, ok := Image(manifests); !ok || image == "new" {
			t.Errorf("%s: the input was changed to %s", containers, image)
		}
	}
	for name, manifests := range map[string][]*unstructured.Unstructured{
		"no workload":      parse(t, `{apiVersion: v1, kind: Service}`),
		"several":          append(parse(t, workload+`[{name: one}]`), parse(t, workload+`[{name: two}]`)...),
		"which container?": parse(t, workload+`[{name: one, image: a}, {name: two, image: b}]`),
	} {
		if _, err := WithImage(manifests, "new"); err == nil {
			t.Errorf("%s: there is no error", name)
		}
		if image, ok := Image(manifests); ok {
			t.Errorf("%s: the image is %s", name, image)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	for image, expected := range map[string]bool{
		"": true, "controller:latest": true, "controller": true, "REPLACE_IMAGE": true, "{{ .Image }}": true,
		"team/controller:v1": false, "controllers": false,
	} {
		if IsPlaceholder(image) != expected {
			t.Errorf("%q is a placeholder: %v", image, !expected)
		}
	}
}

func TestEntrypoint(t *testing.T) {
	for containers, expected := range map[string]string{
		`[{name: a}]`:                                "/manager",
		`[{name: a, command: [/operator]}]`:          "/operator",
		`[{name: a, command: [./bin/operator]}]`:     "/bin/operator",
		`[{name: a, command: [operator, --flag]}]`:   "/usr/local/bin/operator",
		`[{name: a, command: [/bin/sh, -c, "a b"]}]`: "/manager",
		`[{name: a}, {name: b}]`:                     "/manager",
	} {
		if got := Entrypoint(parse(t, workload+containers)); got != expected {
			t.Errorf("%s: %s", containers, got)
		}
	}
	if got := Entrypoint(nil); got != "/manager" {
		t.Errorf("without manifests it is %s", got)
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

func TestProgress(t *testing.T) {
	for _, test := range []struct {
		generation, observed     int64
		want, updated, available int32
		expected                 string
	}{
		{1, 1, 2, 2, 2, ""},
		{2, 1, 2, 2, 2, "the rollout has not started yet"},
		{1, 1, 3, 2, 1, "2 of 3 pods are updated, 1 are available"},
		{1, 1, 0, 0, 0, ""},
	} {
		if got := progress(test.generation, test.observed, test.want, test.updated, test.available); got != test.expected {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
