// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"context"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/flow"
)

// withDefaultClass gives new Ingresses a class, as the API server's admission does. It counts dry runs.
func (r *reconciled) withDefaultClass(class string, asked *int) {
	r.Reconciler.Client = interceptor.NewClient(r.Reconciler.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			live, isIngress := object.(*networkingv1.Ingress)
			if !isIngress {
				return c.Create(ctx, object, options...)
			}
			isDryRun := len((&client.CreateOptions{}).ApplyOptions(options).DryRun) > 0
			if isDryRun {
				*asked++
			} else if err := c.Create(ctx, object, options...); err != nil {
				return err
			}
			if class == "" || live.Spec.IngressClassName != nil {
				return nil
			}
			live.Spec.IngressClassName = &class
			if isDryRun {
				return nil
			}
			// No manager owns what admission sets.
			entries := live.ManagedFields
			if err := c.Update(ctx, live, client.FieldOwner("admission")); err != nil {
				return err
			}
			live.ManagedFields = entries
			return c.Update(ctx, live, client.FieldOwner("admission"))
		},
	})
}

func TestTheClassOfAnIngress(t *testing.T) {
	set := func(class *string, who string) func(*testing.T, *reconciled) {
		return func(t *testing.T, r *reconciled) {
			t.Helper()
			live := r.ingress()
			live.Spec.IngressClassName = class
			if err := r.Update(t.Context(), live, client.FieldOwner(who)); err != nil {
				t.Fatal(err)
			}
		}
	}
	strip := func(t *testing.T, r *reconciled) {
		t.Helper()
		live := r.ingress()
		live.Spec.IngressClassName, live.Annotations, live.OwnerReferences = nil, nil, nil
		if err := r.Update(t.Context(), live, client.FieldOwner("kubectl-replace")); err != nil {
			t.Fatal(err)
		}
	}
	name := func(class *string) func(*testing.T, *reconciled) {
		return func(t *testing.T, r *reconciled) {
			t.Helper()
			var owner appv1.AppService
			if err := r.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "web"}, &owner); err != nil {
				t.Fatal(err)
			}
			owner.Spec.Ingress.ClassName = class
			owner.Generation++
			if err := r.Update(t.Context(), &owner); err != nil {
				t.Fatal(err)
			}
		}
	}
	type steps []func(*testing.T, *reconciled)
	for _, test := range []struct {
		name, standard string
		steps          steps
		want           string
		asks           int
	}{
		{"untouched", "nginx", nil, "nginx", 0},
		{"changed", "nginx", steps{set(ptr.To("other"), "kubectl")}, "nginx", 0},
		{"changed under our name", "nginx", steps{set(ptr.To("other"), "opdock-appservice")}, "nginx", 0},
		{"removed", "nginx", steps{set(nil, "kubectl")}, "nginx", 0},
		{"removed with all that tells of it", "nginx", steps{strip}, "nginx", 1},
		{"named, and then no longer", "nginx", steps{name(ptr.To("special")), name(nil)}, "nginx", 1},
		{"named", "nginx", steps{name(ptr.To("special"))}, "special", 0},
		{"without a default, untouched", "", nil, "", 0},
		{"without a default, changed", "", steps{set(ptr.To("other"), "kubectl")}, "", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := 0
			r := newReconciled(t, app(t, `{image: i, ports: [{port: 80}], ingress: {rules: [{host: a, path: /}]}}`))
			r.withDefaultClass(test.standard, &asked)
			r.pass()
			r.pass()
			for _, step := range test.steps {
				step(t, r)
				r.pass()
			}
			live := r.ingress()
			if got := ptr.Deref(live.Spec.IngressClassName, ""); got != test.want || asked != test.asks {
				t.Errorf("the class is %q, after %d questions", got, asked)
			}
			r.pass()
			if quiet := r.ingress(); quiet.ResourceVersion != live.ResourceVersion || asked != test.asks || quiet.Labels[flow.LabelInstance] != "web" {
				t.Errorf("it is not quiet: %d questions", asked)
			}
		})
	}
}

func (r *reconciled) ingress() *networkingv1.Ingress {
	r.t.Helper()
	live := &networkingv1.Ingress{}
	if err := r.Get(r.t.Context(), client.ObjectKey{Namespace: "n", Name: "web"}, live); err != nil {
		r.t.Fatal(err)
	}
	return live
}
