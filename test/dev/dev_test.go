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
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/freeport"
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

// TestPlainProject has an operator that knows nothing of controller-runtime, and has no roles.
func TestPlainProject(t *testing.T) {
	p := newProject(t, "plain")
	p.start(t)
	if round := p.good(t, "build", "apply", "restart"); round.State != "reconciling" {
		t.Errorf("it is %s", round.State)
	}
	if said := p.said.String(); !strings.Contains(said, "runs as an administrator") {
		t.Errorf("it was not said: %s", said)
	}
	server := p.server(t)
	kind := schema.GroupVersionKind{Group: "plain.example.com", Version: "v1", Kind: "Buoy"}
	colour := func(want string) {
		t.Helper()
		testenv.Eventually(t, "the buoy is "+want, func(ctx context.Context) error {
			buoy, err := get(ctx, server, kind, "sample")
			if err == nil && buoy.GetAnnotations()["plain.example.com/colour"] != want {
				return fmt.Errorf("it has %v", buoy.GetAnnotations())
			}
			return err
		})
	}
	if _, err := get(t.Context(), server, kind, "sample"); !apierrors.IsNotFound(err) {
		t.Errorf("samples were not requested: %v", err)
	}
	buoy := &unstructured.Unstructured{}
	buoy.SetGroupVersionKind(kind)
	buoy.SetNamespace("default")
	buoy.SetName("sample")
	if err := server.Create(t.Context(), buoy); err != nil {
		t.Fatal(err)
	}
	colour("red")
	p.edit(t, "main.go", `"red"`, `"green"`)
	p.good(t, "build", "restart")
	colour("green")
	if code := p.stop(t, os.Interrupt); code != 0 {
		t.Errorf("exit code %d", code)
	}
	noProcess(t, p)
}

// TestPortInUse names who has the port that the operator's webhooks need. The operator is also told to elect a leader,
// which those do that have no flag against it.
func TestPortInUse(t *testing.T) {
	p := newProject(t, "ship")
	number, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(number)
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p.start(t, "--", "--leader-elect", "--webhook-port="+port)
	problem := p.bad(t, "restart")
	if !strings.Contains(problem.Text, "port "+port+" is in use by") {
		t.Errorf("got %q", problem.Text)
	}
	if runtime.GOOS == "linux" && !strings.Contains(problem.Text, "pid "+strconv.Itoa(os.Getpid())) {
		t.Errorf("it does not say who has it: %q", problem.Text)
	}
	// Once it is free, any change starts the operator.
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	p.edit(t, controllerFile, "lets ships greet", "lets all ships greet")
	if round := p.next(t); round.State != "reconciling" {
		t.Errorf("got %+v", round)
	}
	server := p.server(t)
	lease := func() *unstructured.Unstructured {
		t.Helper()
		found, err := get(t.Context(), server, schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, "ship")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := lease()
	p.edit(t, controllerFile, `"ahoy, "`, `"hello, "`)
	p.good(t, "build", "restart")
	if lease().GetUID() == before.GetUID() {
		t.Error("the lease of the process from before was not released, so that the next has waited for it")
	}
}

// TestOtherCluster runs on a cluster that opdock dev has not started and treats as a shared one. The manifests are as
// kubebuilder v2 wrote them: the operator has the account that every namespace has.
func TestOtherCluster(t *testing.T) {
	p := newProject(t, "ship")
	p.edit(t, "config/manager/manager.yaml", "      serviceAccountName: captain\n", "")
	p.edit(t, "config/rbac/kustomization.yaml", " service_account.yaml,", "")
	p.edit(t, "config/rbac/role_binding.yaml", "- kind: ServiceAccount\n  name: captain\n", "- kind: ServiceAccount\n  name: default\n")
	other := clustertest.Shared(t)
	p.kubeconfig = other.Kubeconfig()
	p.start(t, "--kubeconfig", other.Kubeconfig(), "--samples")
	p.good(t, "generate", "apply", "build", "apply", "restart", "samples")
	server := p.server(t)
	greets(t, server, "sample", "ahoy, world")
	if said := p.said.String(); !strings.Contains(said, "system:serviceaccount:ship-system:default") {
		t.Errorf("it was not said: %s", said)
	}
	// It cannot call this machine, so that a webhook would refuse everything.
	hooks := &unstructured.UnstructuredList{}
	hooks.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfigurationList"})
	if err := server.List(t.Context(), hooks); err != nil {
		t.Fatal(err)
	}
	if len(hooks.Items) > 0 {
		t.Errorf("it has webhooks: %v", hooks.Items)
	}
	if code := p.stop(t, os.Interrupt); code != 0 {
		t.Errorf("exit code %d", code)
	}
	noProcess(t, p)
	greeted, err := get(t.Context(), server, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "sample")
	if err != nil {
		t.Fatalf("the cluster has not survived: %v", err)
	}
	if err := server.Delete(t.Context(), greeted); err != nil {
		t.Error(err)
	}
}
