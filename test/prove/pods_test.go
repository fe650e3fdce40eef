// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/prove"
)

// TestImagesThatCannotBePulled is about an operator that calls its custom resource ready as soon as it has created the Deployment.
// Everything is well in the end, so that is the only finding: if no image can be pulled, and if a user names one that does not exist.
func TestImagesThatCannotBePulled(t *testing.T) {
	t.Parallel()
	beacon := filepath.Join("..", "upgrade", "testdata", "beacon")
	o := brief(t, options(t, testenv.Project(t, filepath.Join("..", ".."), "beacon", beacon, filepath.Join("testdata", "shared"))))
	claim(t, o.Dir)
	wrong := values.Change{Path: []string{"spec", "tower"}, Value: "missing.invalid/no-such-image:0", Class: values.Misuse}
	for known, test := range map[string]struct {
		plan *engine.Plan
		want string
	}{
		"pods-000000": {&engine.Plan{Family: "pods", Variant: "image-pull", Step: 0, Says: "No new pod can pull its image, and later all can"}, "not Ready, because "},
		"input-000000": {
			&engine.Plan{Family: "input", Variant: "misuse", Step: 1, Object: "Beacon default/cape", Path: wrong.Path, Value: wrong, Says: "The image does not exist"},
			"the value is refused at admission or reported in the status, because Deployment default/cape: ",
		},
	} {
		t.Run(test.plan.Family, func(t *testing.T) {
			campaign, _, err := (&prove.Campaign{Plans: map[string]*engine.Plan{known: test.plan}}).Replay(t.Context(), o, known)
			if err != nil {
				t.Fatal(err)
			}
			found := campaign.Report.Findings
			if len(found) != 1 || found[0].Verdict != "status" || found[0].Flaky || !strings.HasPrefix(found[0].Want, test.want) || found[0].Object != "Beacon default/cape" {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// TestWrongImagesThatAreTakenBack is about an operator with a StatefulSet. It does what the spec says at once, and Kubernetes does not
// replace the pod that never got ready: that is not the operator's to mend. With WAITS, it does nothing until the pod is ready, and so
// it never puts the image right. `make defects` tries that as well.
func TestWrongImagesThatAreTakenBack(t *testing.T) {
	t.Parallel()
	beacon := filepath.Join("..", "upgrade", "testdata", "beacon")
	o := brief(t, options(t, testenv.Project(t, filepath.Join("..", ".."), "beacon", beacon, filepath.Join("testdata", "shared"))))
	namesImage(t, o.Dir)
	rewrite(t, filepath.Join(o.Dir, "cmd", "main.go"), map[string]string{
		"appsv1.Deployment": "appsv1.StatefulSet",
		`	"context"
`: `	"context"
	"os"
`,
		`		labels := map[string]string`: `		if os.Getenv("WAITS") != "" && lamp.UID != "" && lamp.Status.ReadyReplicas == 0 {
			return nil
		}
		labels := map[string]string`,
	})
	rewrite(t, filepath.Join(o.Dir, "config", "rbac", "rbac.yaml"), map[string]string{"deployments": "statefulsets"})
	wrong := values.Change{Path: []string{"spec", "tower"}, Value: "missing.invalid/no-such-image:0", Class: values.Misuse}
	const known = "input-000000"
	plan := &engine.Plan{Family: "input", Variant: "misuse", Step: 1, Object: "Beacon default/cape", Path: wrong.Path, Value: wrong, Says: "The image does not exist"}
	for waits, want := range map[string]string{"WAITS=": "", "WAITS=1": "end-state StatefulSet default/cape"} {
		t.Run(waits, func(t *testing.T) {
			skipRare(t, want != "")
			o := o
			o.Env = append(slices.Clone(o.Env), waits)
			campaign, _, err := (&prove.Campaign{Plans: map[string]*engine.Plan{known: plan}}).Replay(t.Context(), o, known)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range campaign.Report.Findings {
				got = append(got, f.Verdict+" "+f.Object)
				t.Logf("%+v", f)
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("found %q, want %q", got, want)
			}
			if want == "" {
				expectClean(t, campaign, "input")
			}
		})
	}
}

// TestEvictedPods is about an operator that runs one pod and looks only whether it exists. With REPLACES, it deletes a pod that failed.
func TestEvictedPods(t *testing.T) {
	t.Parallel()
	beacon := filepath.Join("..", "upgrade", "testdata", "beacon")
	o := options(t, testenv.Project(t, filepath.Join("..", ".."), "beacon", beacon, filepath.Join("testdata", "shared")))
	runsPod(t, o.Dir)
	plan := &engine.Plan{Family: "pods", Variant: "evicted", Step: 1, Says: "One pod of each workload is evicted by its kubelet"}
	expectFound(t, brief(t, o), plan, map[string]string{"REPLACES=": "end-state Pod default/cape", "REPLACES=1": ""})
}

// runsPod makes the operator run a pod instead of a Deployment.
func runsPod(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "cmd", "main.go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := strings.Index(string(text), "	lamp := "), strings.Index(string(text), "// report writes")
	rewrite(t, path, map[string]string{
		`	"context"
`: `	"context"
	"os"
`,
		`	appsv1 "k8s.io/api/apps/v1"
`: ``,
		`	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
`: ``,
		"&appsv1.Deployment{}, func": "&corev1.Pod{}, func",
		string(text[begin:end]): `	lamp := &corev1.Pod{}
	switch err := r.Get(ctx, client.ObjectKeyFromObject(one), lamp); {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err == nil && lamp.Status.Phase == corev1.PodFailed && os.Getenv("REPLACES") != "":
		return r.Delete(ctx, lamp, client.Preconditions{UID: &lamp.UID})
	case err == nil:
		return nil
	}
	lamp.Namespace, lamp.Name = one.GetNamespace(), one.GetName()
	lamp.Spec.Containers = []corev1.Container{{Name: "lamp", Image: "lamp:1", Env: []corev1.EnvVar{{Name: "OIL", Value: oil}}}}
	if err := controllerutil.SetControllerReference(one, lamp, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, lamp)
}

`,
	})
	rewrite(t, filepath.Join(dir, "config", "rbac", "rbac.yaml"), map[string]string{
		"rules:\n": "rules:\n- {apiGroups: [\"\"], resources: [pods], verbs: [get, list, watch, create, delete]}\n",
	})
}

// claim makes the operator write Ready with the rest of the status, and use an image that the user names.
func claim(t *testing.T, dir string) {
	t.Helper()
	namesImage(t, dir)
	const before = `	_ = unstructured.SetNestedField(one.Object, one.GetGeneration(), "status", "observedGeneration")`
	rewrite(t, filepath.Join(dir, "cmd", "main.go"), map[string]string{before: before + `
	condition := map[string]any{"type": "Ready", "status": "True", "reason": "Lit", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}
	_ = unstructured.SetNestedSlice(one.Object, []any{condition}, "status", "conditions")`})
}

// namesImage makes the operator use an image that the user names.
func namesImage(t *testing.T, dir string) {
	t.Helper()
	const before = `		containers[0].Image = "lamp:1"`
	rewrite(t, filepath.Join(dir, "cmd", "main.go"), map[string]string{before: before + `
		if image, found, _ := unstructured.NestedString(one.Object, "spec", "tower"); found {
			containers[0].Image = image
		}`})
}

// rewrite changes a file.
func rewrite(t *testing.T, path string, changes map[string]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text)
	for before, after := range changes {
		if !strings.Contains(changed, before) {
			t.Fatalf("%q is not in %s", before, path)
		}
		changed = strings.ReplaceAll(changed, before, after)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}
