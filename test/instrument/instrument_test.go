// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instrument_test builds an operator that knows nothing of Opdock so that it marks its reconciles, and runs it behind
// a lens on a real control plane.
package instrument_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/instrument"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/story"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/why"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// TestThisVersion uses the version of controller-runtime that this module uses, and its sums.
func TestThisVersion(t *testing.T) {
	requirements, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(requirements), "\n")
	dir := newProject(t, "main.go.txt", "module example.com/operator\n"+rest, string(sums))
	proveMarks(t, dir)
}

func newProject(t *testing.T, source, module, sums string) string {
	t.Helper()
	dir := t.TempDir()
	main, err := os.ReadFile(filepath.Join("testdata", source))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": module, "go.sum": sums, "main.go": string(main)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// proveMarks builds the operator in a folder, runs it, and expects the story that a ConfigMap and its change cause.
func proveMarks(t *testing.T, dir string) {
	t.Helper()
	binary := build(t, dir)
	namespace := clustertest.Namespace(t)
	direct, err := kubernetes.NewForConfig(clustertest.Shared(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := lens.Start(t.Context(), lens.Options{Upstream: clustertest.Shared(t).Config(), Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	told := &records{namespace: namespace}
	following := make(chan struct{})
	go func() {
		defer close(following)
		teller := story.New(told.add)
		for event := range proxy.Stream().Follow(context.Background(), 0) {
			teller.Add(event)
		}
	}()
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
		<-following
	})
	run(t, binary, proxy)
	told.await(t, "ConfigMap/kube-root-ca.crt <listed ConfigMap/kube-root-ca.crt>") // which every namespace has

	maps := direct.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"copy": "yes"}}, Data: map[string]string{"x": "1"},
	}, metav1.CreateOptions{FieldManager: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	told.await(t, "ConfigMap/a <created ConfigMap/a> create Secret/a")
	if got := sourceOf(t, proxy, namespace); got != writes(t, dir) {
		t.Errorf("the Secret is created at %q, and not at %q", got, writes(t, dir))
	}
	made.Data["x"] = "2"
	if _, err := maps.Update(t.Context(), made, metav1.UpdateOptions{FieldManager: "tester"}); err != nil {
		t.Fatal(err)
	}
	told.await(t, "ConfigMap/a <updated ConfigMap/a data.x by tester> update Secret/a")
	if err := direct.CoreV1().Secrets(namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	told.await(t, "ConfigMap/a <deleted Secret/a> create Secret/a")
}

// sourceOf is what the lens knows about the line that created the Secret.
func sourceOf(t *testing.T, proxy *lens.Lens, namespace string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for event := range proxy.Stream().Follow(ctx, 0) {
		switch r := event.Request; {
		case r == nil:
		case len(r.Source) > 0 && !r.IsWrite():
			t.Errorf("a %s says where it comes from: %q", r.Verb, r.Source)
		case r.Verb == "create" && r.Resource.Resource == "secrets" && r.Resource.Namespace == namespace:
			return strings.Join(r.Source, " ")
		}
	}
	return ""
}

// writes is the line of the operator that writes.
func writes(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "controllerutil.CreateOrUpdate(")
	return fmt.Sprintf("main.go:%d", strings.Count(before, "\n")+1)
}

func build(t *testing.T, dir string) string {
	t.Helper()
	p := instrument.Project{Dir: dir, Env: append(os.Environ(), "GOWORK=", "GOFLAGS="), StateDir: t.TempDir()}
	how, err := p.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	binary := filepath.Join(t.TempDir(), "operator")
	args := append([]string{"build", "-o", binary, "-ldflags=-s -w", "-buildvcs=false"}, how.Flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	cmd.Dir, cmd.Env = dir, slices.Concat(p.Env, how.Env)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building with controller-runtime %s: %v\n%s", how.Version, err, output)
	}
	if after := files(t, dir); after != before {
		t.Errorf("the build has changed the project:\n%s", after)
	}
	return binary
}

func files(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// run runs the operator until the test ends.
func run(t *testing.T, binary string, proxy *lens.Lens) {
	t.Helper()
	kubeconfig, err := proxy.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+path, lens.HookVariable+"="+proxy.HookAddress())
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	proxy.Note(lens.Event{Process: &lens.Process{Started: true, Instrumented: true}})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Log(output.String())
		}
	})
}

// records are what the story tells about one namespace.
type records struct {
	namespace string

	mutex sync.Mutex
	all   []string
}

func (r *records) add(record *why.Record) {
	if record.Object.Namespace != r.namespace {
		return
	}
	var line strings.Builder
	line.WriteString(record.Object.Kind + "/" + record.Object.Name)
	for _, cause := range record.Causes {
		fmt.Fprintf(&line, " <%s", cause.Type)
		if cause.Object != nil {
			fmt.Fprintf(&line, " %s/%s", cause.Object.Kind, cause.Object.Name)
		}
		for _, change := range cause.Changes {
			line.WriteString(" " + change.Path)
		}
		for _, writer := range cause.By {
			line.WriteString(" by " + writer.Manager)
		}
		line.WriteString(">")
	}
	for _, write := range record.Writes {
		fmt.Fprintf(&line, " %s %s/%s", write.Verb, write.Object.Kind, write.Object.Name)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.all = append(r.all, line.String())
}

func (r *records) await(t *testing.T, want string) {
	t.Helper()
	testenv.Eventually(t, "the story says "+want, func() error {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		for _, line := range r.all {
			if line == want {
				return nil
			}
		}
		return fmt.Errorf("it says\n%s", strings.Join(r.all, "\n"))
	})
}
