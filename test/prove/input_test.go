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
	o = brief(t, o)
	const known = "input-000000"
	plan := &engine.Plan{Family: "input", Variant: "content", Step: 1, Object: "ConfigMap default/oil", Fresh: true, Says: "ConfigMap default/oil gets other content"}
	for follows, want := range map[string]string{"FOLLOWS=": "update Deployment default/cape spec.template.spec.containers[lamp].env[OIL].value", "FOLLOWS=1": ""} {
		t.Run(follows, func(t *testing.T) {
			skipRare(t, want == "")
			o := o
			o.Env = append(slices.Clone(o.Env), follows)
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
				expectClean(t, campaign, "input")
			}
		})
	}
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
