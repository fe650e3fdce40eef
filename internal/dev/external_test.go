// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/project"
)

const lamps = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.other.io}
spec:
  group: other.io
  names: {kind: Lamp, plural: lamps}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true}]
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}
`

// said keeps what a session tells.
type said struct {
	Screen

	texts []string
}

func (s *said) Say(text string) { s.texts = append(s.texts, text) }

// A kind of another module has its CRD in that module. It is applied on clusters for development.
func TestDefinitionsOfOtherModules(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod": "module example.com/mine\n\ngo 1.26\n\nrequire other.io/things v1.0.0\n\nreplace other.io/things => ./things\n",
		"PROJECT": "domain: example.com\nlayout:\n- go.kubebuilder.io/v4\nprojectName: mine\nversion: \"3\"\nresources:\n" +
			"- {controller: true, domain: other.io, external: true, kind: Lamp, path: other.io/things/v1, version: v1}\n",
		"cmd/main.go":             "package main\n\nimport _ \"other.io/things/v1\"\n\nfunc main() {}\n",
		"things/go.mod":           "module other.io/things\n\ngo 1.26\n",
		"things/v1/types.go":      "package v1\n",
		"things/deploy/lamp.yaml": lamps,
	})
	found, err := project.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	session := func(ours bool, existing ...runtime.Object) (*Session, *said) {
		screen := &said{}
		return &Session{
			Options: Options{Project: found, Env: append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"), Cluster: Cluster{CallsBack: ours}, Screen: screen},
			applier: &applier{server: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRuntimeObjects(existing...).Build()},
		}, screen
	}

	s, screen := session(true)
	definitions := s.externalDefinitions(t.Context())
	if len(definitions) != 1 || definitions[0].GetName() != "lamps.other.io" {
		t.Fatalf("got %v", definitions)
	}
	if strategy, _, _ := unstructured.NestedString(definitions[0].Object, "spec", "conversion", "strategy"); strategy != "None" {
		t.Errorf("it is converted by a program that does not run: %s", strategy)
	}
	if again := s.externalDefinitions(t.Context()); len(again) != 1 || len(screen.texts) != 1 {
		t.Errorf("the second time: %v, said %q", again, screen.texts)
	}

	s, screen = session(true, object(t, lamps))
	if definitions := s.externalDefinitions(t.Context()); len(definitions) > 0 || len(screen.texts) > 0 {
		t.Errorf("it is installed already: %v, said %q", definitions, screen.texts)
	}
	s, screen = session(false)
	if definitions := s.externalDefinitions(t.Context()); len(definitions) > 0 || len(screen.texts) > 0 {
		t.Errorf("the cluster is not ours alone: %v, said %q", definitions, screen.texts)
	}
}

// A kind of the project's own may only not be served yet, and is not installed a second time, without its conversion.
func TestMissingKindsThatAreDefined(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"go.mod": "module example.com/mine\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n", "config/crd/lamp.yaml": lamps})
	found, err := project.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	screen := &said{}
	s := &Session{
		Options: Options{Project: found, Main: ".", Env: os.Environ(), Cluster: Cluster{CallsBack: true}, Screen: screen},
		applier: applierOf(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRuntimeObjects(object(t, lamps)).Build()),
	}
	if s.installMissing(t.Context(), []project.Wanted{{Group: "other.io", Kind: "Lamp"}}) || len(screen.texts) > 0 {
		t.Errorf("it was installed: %q", screen.texts)
	}
	s.Cluster.CallsBack = false
	s.sought = nil
	if s.installMissing(t.Context(), []project.Wanted{{Group: "other.io", Kind: "Lamp"}}) {
		t.Error("the cluster is not ours alone")
	}
}

// A kind of Kubernetes whose old version is gone has no CRD.
func TestKindInARemovedVersion(t *testing.T) {
	policy := schema.GroupVersion{Group: "policy", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{policy})
	mapper.Add(policy.WithKind("PodDisruptionBudget"), meta.RESTScopeNamespace)
	s := &Session{applier: applierOf(fake.NewClientBuilder().WithRESTMapper(mapper).Build())}
	removed := project.Wanted{Group: "policy", Kind: "PodDisruptionBudget"}
	unheard := project.Wanted{Group: "other.io", Kind: "Lamp"}
	const want = "the cluster has kind PodDisruptionBudget of policy, but not in the version that the operator requests: use policy/v1 in its code"
	if got := s.problem("await", &LackingError{Kinds: []project.Wanted{unheard, removed}}); got.Hint != want {
		t.Errorf("got %q", got.Hint)
	}
	if got := s.problem("await", &LackingError{Kinds: []project.Wanted{unheard}}); got.Hint != lackingHint {
		t.Errorf("got %q", got.Hint)
	}

	// Some operators exit because of it, others work without it.
	screen := &rounds{}
	s.Screen, s.Observer, s.retry = screen, unobserved{}, time.NewTimer(time.Hour)
	defer s.retry.Stop()
	s.process = &process{ready: newReadiness(), began: time.Now()}
	s.process.ready.wanted = []project.Wanted{removed}
	s.crash(Round{})
	if len(screen.rounds) != 1 || !strings.HasSuffix(screen.rounds[0].Problem.Hint, "; "+want) {
		t.Errorf("got %+v", screen.rounds)
	}
	says := &said{}
	s.Screen, s.unfound = says, map[project.Wanted]bool{removed: true}
	s.sayLacking()
	if len(says.texts) != 1 || !strings.HasSuffix(says.texts[0], "; "+want) {
		t.Errorf("said %q", says.texts)
	}
}
