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

// TestContentThatChanges is about an operator that passes on what is in a ConfigMap. It learns of a change only if it watches
// ConfigMaps for that, with FOLLOWS.
func TestContentThatChanges(t *testing.T) {
	t.Parallel()
	beacon := filepath.Join("..", "upgrade", "testdata", "beacon")
	o := options(t, testenv.Project(t, filepath.Join("..", ".."), "beacon", beacon, filepath.Join("testdata", "shared")))
	readsOil(t, o.Dir)
	plan := &engine.Plan{Family: "input", Variant: "content", Step: 1, Object: "ConfigMap default/oil", Fresh: true, Says: "ConfigMap default/oil gets other content"}
	expectFound(t, brief(t, o), plan, map[string]string{
		"FOLLOWS=": "update Deployment default/cape spec.template.spec.containers[lamp].env[OIL].value", "FOLLOWS=1": "",
	})
}

// TestPodsThatMissAChange is about an operator whose pods have a variable from a ConfigMap that it writes. With HASHES, it replaces
// them when the ConfigMap changes.
func TestPodsThatMissAChange(t *testing.T) {
	t.Parallel()
	beacon := filepath.Join("..", "upgrade", "testdata", "beacon")
	o := options(t, testenv.Project(t, filepath.Join("..", ".."), "beacon", beacon, filepath.Join("testdata", "shared")))
	configures(t, o.Dir)
	change := values.Change{Path: []string{"spec", "tower"}, Value: "south", Class: values.Valid}
	plan := &engine.Plan{Family: "input", Variant: "valid", Step: 1, Object: "Beacon default/cape", Path: change.Path, Value: change, Fresh: true, Says: "Beacon default/cape gets another tower"}
	expectFound(t, brief(t, o), plan, map[string]string{"HASHES=": "update ConfigMap default/cape data.tower", "HASHES=1": ""})
}

// TestChangesThatCannotBeReverted is about a number that the CRD lets only grow, and that the operator passes on only when it creates
// the Deployment.
func TestChangesThatCannotBeReverted(t *testing.T) {
	t.Parallel()
	beacon := filepath.Join("..", "upgrade", "testdata", "beacon")
	o := options(t, testenv.Project(t, filepath.Join("..", ".."), "beacon", beacon, filepath.Join("testdata", "shared")))
	rewrite(t, filepath.Join(o.Dir, "config", "crd", "beacons.yaml"), map[string]string{
		"maximum: 50}": `maximum: 50, x-kubernetes-validations: [{rule: "self >= oldSelf"}]}`,
	})
	rewrite(t, filepath.Join(o.Dir, "cmd", "main.go"), map[string]string{
		`	"context"
`: `	"context"
	"fmt"
	"os"
`,
		`		containers[0].Env = []corev1.EnvVar{{Name: "OIL", Value: oil}}
`: `		if reach, _, _ := unstructured.NestedInt64(one.Object, "spec", "reach"); lamp.UID == "" || os.Getenv("FOLLOWS") != "" {
			containers[0].Env = []corev1.EnvVar{{Name: "REACH", Value: fmt.Sprint(reach)}}
		}
`,
	})
	change := values.Change{Path: []string{"spec", "reach"}, Value: int64(46), Class: values.Valid}
	plan := &engine.Plan{Family: "input", Variant: "valid", Step: 1, Object: "Beacon default/cape", Path: change.Path, Value: change, Fresh: true, Says: "Beacon default/cape reaches farther"}
	expectFound(t, brief(t, o), plan, map[string]string{
		"FOLLOWS=": "update Deployment default/cape spec.template.spec.containers[lamp].env[REACH].value", "FOLLOWS=1": "",
	})
}

// TestRolloutRestart is about an operator that sets all annotations of its pod template, and so removes the one of kubectl.
func TestRolloutRestart(t *testing.T) {
	skipRare(t, true)
	t.Parallel()
	beacon := filepath.Join("..", "upgrade", "testdata", "beacon")
	o := options(t, testenv.Project(t, filepath.Join("..", ".."), "beacon", beacon, filepath.Join("testdata", "shared")))
	configures(t, o.Dir)
	plan := &engine.Plan{Family: "drift", Variant: "rollout-restart", Step: 1, Object: "Deployment default/cape", Says: "Another user restarts the pods"}
	expectFound(t, brief(t, o), plan, map[string]string{
		"HASHES=1": "end-state Deployment default/cape spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt", "HASHES=": "",
	})
}

// expectFound replays a plan with each of these variables, and wants these findings. If there are to be none, the case is rare.
func expectFound(t *testing.T, o prove.Options, plan *engine.Plan, wanted map[string]string) {
	t.Helper()
	known := plan.Family + "-000000"
	for variable, want := range wanted {
		t.Run(variable, func(t *testing.T) {
			skipRare(t, want == "")
			o := o
			o.Env = append(slices.Clone(o.Env), variable)
			campaign, _, err := (&prove.Campaign{Plans: map[string]*engine.Plan{known: plan}}).Replay(t.Context(), o, known)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range campaign.Report.Findings {
				got = append(got, strings.Join(append([]string{f.Verdict, f.Object}, f.Fields...), " "))
				t.Logf("%s (%s): want %s, got %s", f.Title, f.Done, f.Want, f.Got)
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("found %q, want %q", got, want)
			}
			if want == "" {
				expectClean(t, campaign, plan.Family)
			}
		})
	}
}

// configures makes the operator write a ConfigMap, and read a variable from it.
func configures(t *testing.T, dir string) {
	t.Helper()
	rewrite(t, filepath.Join(dir, "cmd", "main.go"), map[string]string{
		`	"context"
`: `	"context"
	"os"
`,
		`func (r *reconciler) light(ctx context.Context, one *unstructured.Unstructured) error {
`: `func (r *reconciler) light(ctx context.Context, one *unstructured.Unstructured) error {
	tower, _, _ := unstructured.NestedString(one.Object, "spec", "tower")
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: one.GetNamespace(), Name: one.GetName()}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, settings, func() error {
		settings.Data = map[string]string{"tower": tower}
		return controllerutil.SetControllerReference(one, settings, r.Scheme())
	}); err != nil {
		return err
	}
`,
		`{Name: "OIL", Value: oil}}`: `{Name: "OIL", Value: oil}, {Name: "TOWER", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: one.GetName()}, Key: "tower"},
		}}}
		if os.Getenv("HASHES") != "" {
			lamp.Spec.Template.Annotations = map[string]string{"tower": tower}
		}`,
	})
	rewrite(t, filepath.Join(dir, "config", "rbac", "rbac.yaml"), map[string]string{
		"rules:\n": "rules:\n- {apiGroups: [\"\"], resources: [configmaps], verbs: [get, list, watch, create, update]}\n",
	})
}

// readsOil makes the operator take the value of a variable from a ConfigMap, which becomes one of the samples.
func readsOil(t *testing.T, dir string) {
	t.Helper()
	sample := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: oil}\ndata: {kind: whale}\n"
	if err := os.WriteFile(filepath.Join(dir, "config", "samples", "oil.yaml"), []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	rewrite(t, filepath.Join(dir, "cmd", "serve.go"), map[string]string{".Owns(owned)": ".Owns(owned).Watches(oils())"})
	rewrite(t, filepath.Join(dir, "cmd", "main.go"), map[string]string{
		`	"context"
`: `	"context"
	"os"
`,
		`	ctrl "sigs.k8s.io/controller-runtime"
`: `	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/handler"
`,
		`	oil       = "whale"
`: ``,
		`func (r *reconciler) light(ctx context.Context, one *unstructured.Unstructured) error {
`: `func (r *reconciler) light(ctx context.Context, one *unstructured.Unstructured) error {
	oil := &corev1.ConfigMap{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: one.GetNamespace(), Name: "oil"}, oil); err != nil {
		return err
	}
`,
		"Value: oil}": `Value: oil.Data["kind"]}`,
		`func main() {`: `func oils() (client.Object, handler.EventHandler) {
	return &corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, oil client.Object) []reconcile.Request {
		if os.Getenv("FOLLOWS") == "" || oil.GetName() != "oil" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: oil.GetNamespace(), Name: "cape"}}}
	})
}

func main() {`,
	})
	rewrite(t, filepath.Join(dir, "config", "rbac", "rbac.yaml"), map[string]string{
		"rules:\n": "rules:\n- {apiGroups: [\"\"], resources: [configmaps], verbs: [get, list, watch]}\n",
	})
}
