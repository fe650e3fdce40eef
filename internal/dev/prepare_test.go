// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/project"
)

func TestGeneratedText(t *testing.T) {
	for want, result := range map[string]generate.Result{
		"nothing to generate":             {Skipped: true},
		"generated files unchanged":       {Files: 4},
		"generated a.go":                  {Files: 4, Changes: []generate.Change{{Path: "a.go"}}},
		"generated a.go and b.yaml":       {Files: 4, Changes: []generate.Change{{Path: "a.go"}, {Path: "b.yaml"}}},
		"generated a.go and 2 more files": {Files: 4, Changes: []generate.Change{{Path: "a.go"}, {Path: "b.yaml"}, {Path: "c.yaml"}}},
	} {
		if got := generatedText(&result); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What nothing comes of is told when something was generated, and not again while nothing changes.
func TestWarningsOfGenerators(t *testing.T) {
	result := &generate.Result{Warnings: []generate.Problem{{File: "api/v1/hat.go", Line: 7, Message: "no generator knows it"}}}
	screen := &said{}
	s := &Session{Options: Options{
		Project: &project.Project{Dir: t.TempDir()}, Screen: screen,
		Generate: func(context.Context, generate.Options) (*generate.Result, error) { return result, nil },
	}}
	for range 2 {
		todo := workGenerate
		if err := s.generate(t.Context(), &Round{}, &todo); err != nil || todo != 0 {
			t.Errorf("got %v, and %v is left to do", err, todo)
		}
		result.Skipped = true
	}
	if len(screen.texts) != 1 || screen.texts[0] != "warning: api/v1/hat.go:7:1: no generator knows it" {
		t.Errorf("it said %q", screen.texts)
	}
}

// A round that ends before the webhooks of an earlier session are gone leaves them to the next.
func TestWebhooksAreClearedUntilTheyAreGone(t *testing.T) {
	hooks := object(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: captains}}")
	server := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRuntimeObjects(hooks).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, server client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return server.Delete(ctx, object, options...)
		},
	}).Build()
	s := &Session{
		Options: Options{Cluster: Cluster{CallsBack: true}}, applier: &applier{server: server},
		manifests: manifests{webhooks: []*unstructured.Unstructured{hooks}},
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.clearWebhooks(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := s.clearWebhooks(t.Context()); err != nil {
		t.Error(err)
	}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(hooks), hooks.DeepCopy()); !apierrors.IsNotFound(err) {
		t.Errorf("they are still there: %v", err)
	}
}

// A right that the manifests no longer give is taken away, but the account and its namespace stay.
func TestOutdatedRights(t *testing.T) {
	account := object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: captain, namespace: old}}")
	kept := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: captain}}")
	changed := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: captain}, rules: []}")
	role := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: captain, namespace: port}}")
	elsewhere := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: captain, namespace: quay}}")
	gone := outdatedRights([]*unstructured.Unstructured{account, kept, role}, []*unstructured.Unstructured{changed, elsewhere})
	if len(gone) != 1 || gone[0] != role {
		t.Errorf("got %v", gone)
	}
}
