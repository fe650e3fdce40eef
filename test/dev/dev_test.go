// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/testenv"
)

const (
	typesFile      = "api/v1/ship_types.go"
	controllerFile = "internal/controller/ships.go"
	sampleFile     = "config/samples/harbour_v1_ship.yaml"
)

// get reads an object of the default namespace.
func get(ctx context.Context, server client.Client, gvk schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	err := server.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, o)
	return o, err
}

func ship(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "harbour.example.com/v1", "kind": "Ship",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec,
	}}
}

// greets waits for what the operator makes of a ship.
func greets(t *testing.T, server client.Client, name, want string) {
	t.Helper()
	testenv.Eventually(t, name+" greets", func(ctx context.Context) error {
		note, err := get(ctx, server, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, name)
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(note.Object, "data", "greeting"); got != want {
			return fmt.Errorf("it says %q, not %q", got, want)
		}
		return nil
	})
}

// TestProject follows a user who works on a project in kubebuilder's layout, from an empty cluster to the end.
func TestProject(t *testing.T) {
	p := newProject(t, "ship")
	p.start(t, "--samples")
	first := p.good(t, "generate", "apply", "build", "apply", "restart", "samples")
	if first.State != "reconciling" {
		t.Errorf("it is %s", first.State)
	}
	server := p.server(t)
	greets(t, server, "sample", "ahoy, world")

	t.Run("it acts as its service account", func(t *testing.T) {
		if said := p.said.String(); !strings.Contains(said, "system:serviceaccount:ship-system:ship-captain") {
			t.Errorf("it was not said: %s", said)
		}
		// A right that no marker asks for is missing here as it would be in production.
		p.edit(t, controllerFile, `&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ship.Namespace, Name: ship.Name}}`,
			`&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ship.Namespace, Name: ship.Name}}
	_ = s.Create(ctx, &corev1.Secret{ObjectMeta: note.ObjectMeta})
	if err := s.Create(ctx, &corev1.Secret{ObjectMeta: note.ObjectMeta}); !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}`, `ctrl "sigs.k8s.io/controller-runtime"`, "apierrors \"k8s.io/apimachinery/pkg/api/errors\"\n\tctrl \"sigs.k8s.io/controller-runtime\"")
		p.good(t, "build", "restart")
		testenv.Eventually(t, "the refusal is in the log", func(context.Context) error {
			if log := p.log(); !strings.Contains(log, `User \"system:serviceaccount:ship-system:ship-captain\" cannot create resource \"secrets\"`) {
				return errors.New("it is not")
			}
			return nil
		})
		p.edit(t, controllerFile, `resources=configmaps,`, `resources=configmaps;secrets,`)
		round := p.next(t)
		if round.Problem != nil || len(round.Steps) < 3 || round.Steps[0].Name != "generate" {
			t.Fatalf("got %+v", round)
		}
		testenv.Eventually(t, "the secret is there", func(ctx context.Context) error {
			_, err := get(ctx, server, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "sample")
			return err
		})
		// The process that had the right loses it with its marker.
		before := strings.Count(p.log(), "cannot create resource")
		p.edit(t, controllerFile, `resources=configmaps;secrets,`, `resources=configmaps,`)
		if round := p.next(t); round.Problem != nil || round.State != "" {
			t.Errorf("it is another process, or none: %+v", round)
		}
		if err := server.Create(t.Context(), ship("unarmed", map[string]any{"greeting": "peace"})); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, "the refusal is in the log again", func(context.Context) error {
			if strings.Count(p.log(), "cannot create resource") == before {
				return errors.New("it is not")
			}
			return nil
		})
		p.edit(t, controllerFile, `resources=configmaps,`, `resources=configmaps;secrets,`)
		p.next(t)
		greets(t, server, "unarmed", "ahoy, peace")
	})

	t.Run("webhooks work", func(t *testing.T) {
		crewed := ship("crewed", map[string]any{"greeting": "crew"})
		if err := server.Create(t.Context(), crewed); err != nil {
			t.Fatal(err)
		}
		if crew, _, _ := unstructured.NestedInt64(crewed.Object, "spec", "crew"); crew != 3 {
			t.Errorf("the webhook that sets defaults has given it a crew of %d", crew)
		}
		if err := server.Create(t.Context(), ship("ghost", map[string]any{"crew": int64(-1)})); err == nil || !strings.Contains(err.Error(), "no ghost ships") {
			t.Errorf("the webhook that validates has let it pass: %v", err)
		}
		greets(t, server, "crewed", "ahoy, crew")
	})

	t.Run("a controller is changed", func(t *testing.T) {
		p.edit(t, controllerFile, `"ahoy, "`, `"hello, "`)
		if round := p.good(t, "build", "restart"); round.State != "reconciling" {
			t.Errorf("it is %s", round.State)
		}
		greets(t, server, "sample", "hello, world")
	})

	t.Run("a type is changed", func(t *testing.T) {
		p.edit(t, typesFile, "	// Crew is set", "	// Flag is flown.\n	Flag string `json:\"flag,omitempty\"`\n	// Crew is set")
		p.good(t, "generate", "build", "apply", "restart")
		testenv.Eventually(t, "the new field is kept", func(ctx context.Context) error {
			flagged := ship("crewed", nil)
			err := server.Patch(ctx, flagged, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"flag":"blue"}}`)))
			if err != nil {
				return err
			}
			if flag, _, _ := unstructured.NestedString(flagged.Object, "spec", "flag"); flag != "blue" {
				return fmt.Errorf("it is %q", flag)
			}
			return nil
		})
	})

	t.Run("something does not compile", func(t *testing.T) {
		p.edit(t, controllerFile, `"hello, "`, `"hello, " + nothing`)
		problem := p.bad(t, "build")
		if len(problem.Lines) == 0 || !strings.HasPrefix(problem.Lines[0], controllerFile+":") || !strings.Contains(problem.Text, "keeps running") {
			t.Errorf("got %+v", problem)
		}
		if err := server.Create(t.Context(), ship("meanwhile", map[string]any{"greeting": "all"})); err != nil {
			t.Fatal(err)
		}
		greets(t, server, "meanwhile", "hello, all")
		p.edit(t, controllerFile, `"hello, " + nothing`, `"welcome, "`)
		p.good(t, "build", "restart")
		greets(t, server, "meanwhile", "welcome, all")
	})

	t.Run("a marker is wrong", func(t *testing.T) {
		p.edit(t, typesFile, "	// Crew is set", "	// +kubebuilder:validation:Maximum=many\n	// Crew is set")
		problem := p.bad(t, "generate")
		if len(problem.Lines) == 0 || !strings.HasPrefix(problem.Lines[0], typesFile+":") {
			t.Errorf("got %+v", problem)
		}
		// A default that is of another type only the API server finds.
		p.edit(t, typesFile, "	// +kubebuilder:validation:Maximum=many\n", "	// +kubebuilder:default=many\n")
		refused := p.next(t)
		if problem = refused.Problem; problem == nil || problem.Step != "apply" || !strings.HasPrefix(problem.Lines[0], typesFile+":") {
			t.Fatalf("got %+v", problem)
		}
		if slices.ContainsFunc(refused.Steps, func(step dev.Step) bool { return step.Name == "build" }) {
			t.Errorf("it was not told before the build had ended: %s", refused.Line())
		}
		p.edit(t, typesFile, "	// +kubebuilder:default=many\n", "")
		if round := p.next(t); round.Problem != nil {
			t.Errorf("it is right again: %+v", round.Problem)
		}
	})

	t.Run("a sample is changed", func(t *testing.T) {
		p.edit(t, sampleFile, "greeting: world", "greeting: moon")
		p.good(t, "samples")
		greets(t, server, "sample", "welcome, moon")
		p.edit(t, sampleFile, "greeting: moon", "greeting: [moon]")
		if problem := p.bad(t, "samples"); !strings.HasPrefix(problem.Lines[0], sampleFile+":") || !strings.Contains(problem.Lines[0], "spec.greeting") {
			t.Errorf("got %+v", problem)
		}
		p.edit(t, sampleFile, "greeting: [moon]", "greeting: moon")
		p.next(t)
	})

	t.Run("a manifest is wrong", func(t *testing.T) {
		p.edit(t, "config/rbac/service_account.yaml", "kind: ServiceAccount", "kind: [ServiceAccount")
		if problem := p.bad(t, "apply"); !strings.Contains(strings.Join(problem.Lines, "\n"), "config/rbac/service_account.yaml:") {
			t.Errorf("got %+v", problem)
		}
		p.edit(t, "config/rbac/service_account.yaml", "kind: [ServiceAccount", "kind: ServiceAccount")
		p.good(t)
	})

	t.Run("it crashes", func(t *testing.T) {
		const wreck = "\n	for _, arg := range os.Args {\n		println(arg)\n	}\n	panic(\"aground\")"
		p.edit(t, "cmd/main.go", "	scheme := runtime.NewScheme()", "	scheme := runtime.NewScheme()"+wreck)
		problem := p.bad(t, "run")
		if !strings.Contains(strings.Join(problem.Lines, "\n"), "aground") {
			t.Errorf("the end of its log is %q", problem.Lines)
		}
		// It is tried again, with longer and longer breaks.
		if problem := p.bad(t, "run"); !strings.Contains(problem.Text, "restarting in 2.0 s") {
			t.Errorf("got %q", problem.Text)
		}
		// A process that takes its ports meanwhile does not matter.
		for _, flag := range []string{"--health-probe-bind-address=127.0.0.1", "--webhook-port"} {
			told := regexp.MustCompile(`(?m)^` + flag + `[:=](\d+)$`).FindStringSubmatch(p.log())
			if told == nil {
				t.Fatalf("it was not told %s: %s", flag, p.log())
			}
			listener, err := net.Listen("tcp", ":"+told[1])
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
		}
		p.edit(t, "cmd/main.go", wreck, "")
		for round := p.next(t); round.State != "reconciling"; round = p.next(t) {
			// It may have been tried once more before the change was noticed.
			if round.Problem == nil || !strings.Contains(strings.Join(round.Problem.Lines, "\n"), "aground") {
				t.Fatalf("got %+v, %+v", round, round.Problem)
			}
		}
		refloated := ship("refloated", map[string]any{"greeting": "again"})
		if err := server.Create(t.Context(), refloated); err != nil {
			t.Fatal(err)
		}
		if crew, _, _ := unstructured.NestedInt64(refloated.Object, "spec", "crew"); crew != 3 {
			t.Errorf("the webhook that sets defaults has given it a crew of %d", crew)
		}
		greets(t, server, "refloated", "welcome, again")
	})

	t.Run("it ends", func(t *testing.T) {
		if code := p.stop(t, os.Interrupt); code != 0 {
			t.Errorf("exit code %d", code)
		}
		noProcess(t, p)
		if said := p.said.String(); !strings.Contains(said, `Cluster "ship" is stopped`) {
			t.Errorf("it said: %s", said)
		}
	})

	t.Run("it starts again, and nothing of it is in the way", func(t *testing.T) {
		p.start(t)
		p.good(t, "generate", "build", "restart") // all that it applied is still there
		server := p.server(t)
		if err := server.Create(t.Context(), ship("again", map[string]any{"greeting": "again"})); err != nil {
			t.Fatal(err)
		}
		greets(t, server, "again", "welcome, again")
		// Killing it kills the operator as well.
		p.stop(t, os.Kill)
		testenv.Eventually(t, "nothing of it runs", func(context.Context) error { return processes(p) })
	})
}

// noProcess checks that nothing of a project runs any more.
func noProcess(t *testing.T, p *project) {
	t.Helper()
	if err := processes(p); err != nil {
		t.Error(err)
	}
}

// processes returns an error if a program runs that lies in the project's home, or a cluster that has its state there.
func processes(p *project) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, one := range all {
		program, _ := os.Readlink(filepath.Join(one, "exe"))
		line, _ := os.ReadFile(filepath.Join(one, "cmdline"))
		if strings.HasPrefix(program, p.home) || strings.Contains(string(line), filepath.Join(p.home, "clusters")) {
			return fmt.Errorf("%s still runs: %s", one, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return nil
}
