// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parseAll reads manifests, one to a document.
func parseAll(t *testing.T, text string) []*unstructured.Unstructured {
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
		manifests := parseAll(t, workload+containers)
		changed, err := WithImage(manifests, "new")
		if err != nil {
			t.Errorf("%s: %v", containers, err)
			continue
		}
		var images []string
		for _, container := range Containers(changed[0]) {
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
		"no workload":      parseAll(t, `{apiVersion: v1, kind: Service}`),
		"several":          append(parseAll(t, workload+`[{name: one}]`), parseAll(t, workload+`[{name: two}]`)...),
		"which container?": parseAll(t, workload+`[{name: one, image: a}, {name: two, image: b}]`),
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
		if got := Entrypoint(parseAll(t, workload+containers)); got != expected {
			t.Errorf("%s: %s", containers, got)
		}
	}
	if got := Entrypoint(nil); got != "/manager" {
		t.Errorf("without manifests it is %s", got)
	}
}
