// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/project"
)

func TestWhereSamplesGo(t *testing.T) {
	for name, test := range map[string]struct {
		log       string
		env       []string
		given     bool
		namespace string
		says      int
	}{
		"nothing is known":        {"", nil, false, "default", 0},
		"the log":                 {"INFO Watching namespace(s) harbour,dock", nil, false, "harbour", 1},
		"the log, all":            {"INFO Watching namespace(s) all", nil, false, "default", 0},
		"the environment":         {"", []string{"WATCH_NAMESPACE=harbour"}, false, "harbour", 1},
		"the environment, empty":  {"", []string{"WATCH_NAMESPACE="}, false, "default", 0},
		"the user":                {"INFO Watching namespace(s) harbour", nil, true, "default", 0},
		"default is one of those": {"INFO Watching namespace(s) harbour,default", nil, false, "default", 0},
	} {
		t.Run(name, func(t *testing.T) {
			screen := &said{}
			s := &Session{Options: Options{Namespace: "default", NamespaceGiven: test.given, Env: test.env, Screen: screen}, process: &process{ready: newReadiness()}}
			s.process.ready.read(test.log)
			if got := s.sampleNamespace(); got != test.namespace {
				t.Errorf("got %s", got)
			}
			s.sampleNamespace()
			if len(screen.texts) != test.says {
				t.Errorf("it said %q", screen.texts)
			}
		})
	}
}

func TestSamplesThatTheOperatorDoesNotSee(t *testing.T) {
	screen := &said{}
	s := &Session{Options: Options{Screen: screen}, process: &process{ready: newReadiness()}}
	s.process.ready.read("Watching namespace(s) harbour")
	for _, namespace := range []string{"harbour", "sea", "sea"} {
		s.sayUnwatched(object(t, "{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: argo, namespace: "+namespace+"}}"), false)
	}
	s.sayUnwatched(object(t, "{apiVersion: sea.example.com/v1, kind: Sea, metadata: {name: north}}"), false)
	s.sayUnwatched(object(t, "{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: own, namespace: sea}}"), true)
	want := []string{
		"Ship argo is in namespace sea, but the operator watches only namespace harbour, so it is not reconciled; use --namespace harbour",
		"Ship own is in namespace sea, but the operator watches only namespace harbour, so it is not reconciled; " +
			"change or remove the namespace in the sample",
	}
	if !slices.Equal(screen.texts, want) {
		t.Errorf("it said %q", screen.texts)
	}
}

func TestNamespacesOfSamples(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	session := func(ours bool) (*Session, *said) {
		screen := &said{}
		return &Session{
			Options: Options{Cluster: Cluster{CallsBack: ours}, Screen: screen},
			applier: applierOf(fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).Build()),
		}, screen
	}
	s, screen := session(true)
	for range 2 {
		if err := s.ensureNamespace(t.Context(), "harbour"); err != nil {
			t.Fatal(err)
		}
	}
	created := &unstructured.Unstructured{}
	created.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := s.applier.server.Get(t.Context(), client.ObjectKey{Name: "harbour"}, created); err != nil {
		t.Error(err)
	}
	if want := []string{"created namespace harbour for the samples"}; !slices.Equal(screen.texts, want) {
		t.Errorf("it said %q", screen.texts)
	}
	s, screen = session(false)
	if err := s.ensureNamespace(t.Context(), "harbour"); err != nil || len(screen.texts) > 0 {
		t.Errorf("the cluster is not ours: %v, %q", err, screen.texts)
	}

	s.Project = &project.Project{Dir: t.TempDir()}
	refused := &refusedError{object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "harbour")}
	if lines := strings.Join(s.explainSample(refused), "\n"); !strings.Contains(lines, "kubectl create namespace harbour") {
		t.Errorf("got %s", lines)
	}
}
