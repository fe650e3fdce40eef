// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	appv1 "github.com/opdock/opdock/api/app/v1"
	collectorv1 "github.com/opdock/opdock/api/collector/v1"
)

// versions of the kinds in atomicFields, and of AppService.
var versions = map[string]string{
	"Deployment": "apps/v1", "Service": "v1", "Ingress": "networking.k8s.io/v1", "HorizontalPodAutoscaler": "autoscaling/v2",
	"NetworkPolicy": "networking.k8s.io/v1", "PodDisruptionBudget": "policy/v1", "Collector": "collector.ip/v1", "AppService": "app.example.com/v1",
}

func TestAtomicFieldsAreThoseOfTheSchemas(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, appv1.AddToScheme, collectorv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := new(shapes).of(scheme)
	check := func(kind, field string, want bool) {
		t.Helper()
		if atomic, err := isAtomicInSchema(s, kind, field); err != nil {
			t.Errorf("%s %s: %v", kind, field, err)
		} else if atomic != want {
			t.Errorf("%s %s is atomic: %v, want %v", kind, field, atomic, want)
		}
	}
	for kind, fields := range atomicFields {
		for _, field := range fields {
			check(kind, field, true)
		}
	}
	for _, field := range atomicInPods {
		check("Deployment", podTemplate+field, true)
	}
	for kind := range versions {
		check(kind, "metadata.ownerReferences[]", true)
	}
	// The check can tell the difference.
	check("Deployment", podTemplate+"containers[].ports", false)
	check("Deployment", podTemplate+"securityContext", false)
	check("Service", "spec.ports", false)
}

// isAtomicInSchema makes a configuration that has parts below the field, in each form that the field may have, and asks the
// schemas who owns them.
func isAtomicInSchema(s *shapes, kind, field string) (bool, error) {
	var failed error
	name := strings.TrimSuffix(field, "[]")
	for _, parts := range []string{
		`{"matchLabels": {"a": "b"}}`, `{"key": "a", "name": "b"}`, `{"resource": "a"}`, `{"fieldPath": "a"}`, `{"a": "b"}`,
		`{"runAsUser": 1}`, `["a"]`, `[{"type": "Resource"}]`, `[{"uid": "a", "name": "b"}]`, `[{"host": "a"}]`, `[{"hosts": ["a"]}]`,
		`[{"ports": []}]`, `[{"configMapRef": {"name": "a"}}]`, `[{"key": "a"}]`, `[{"weight": 1}]`, `[{"secret": {"name": "a"}}]`,
		`[{"containerPort": 1, "protocol": "TCP"}]`, `[{"port": 1, "protocol": "TCP"}]`,
	} {
		var content any
		if err := json.Unmarshal([]byte(parts), &content); err != nil {
			return false, err
		}
		steps := strings.Split(name, ".")
		for _, step := range slices.Backward(steps) {
			content = below(step, content)
		}
		configuration := content.(map[string]any)
		configuration["apiVersion"], configuration["kind"] = versions[kind], kind
		if failed = parses(s, configuration); failed == nil {
			return !hasPartsAt(s.fieldsOf(configuration), field), nil
		}
	}
	return false, failed
}

// below returns an object with the content in a field, or in the only item of a list.
func below(step string, content any) map[string]any {
	list, isList := strings.CutSuffix(step, "[]")
	if !isList {
		return map[string]any{step: content}
	}
	item := content.(map[string]any)
	if list == "topologySpreadConstraints" {
		item["topologyKey"], item["whenUnsatisfiable"] = "a", "b" // its keys
	} else {
		item["name"] = "a"
	}
	return map[string]any{list: []any{item}}
}

// parses reports an error unless one of the schemas knows the kind, and the configuration fits it.
func parses(s *shapes, content map[string]any) (err error) {
	converters := s.converters()
	for _, converter := range converters[:len(converters)-1] {
		if _, err = converter.ObjectToTyped(&unstructured.Unstructured{Object: content}); err == nil {
			return nil
		}
	}
	return err
}
