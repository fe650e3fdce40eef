// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/flow"
)

// Admission gives all objects its own label. The caches never hold such a child, so a read must not wait for it, and the
// owner says why it is not ready.
func TestAdmissionThatChangesTheLabel(t *testing.T) {
	r := newReconciled(t, app(t, `{image: i}`))
	relabels, waits := true, 0
	r.Reconciler.Client = interceptor.NewClient(r.Reconciler.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if relabels {
				object.SetLabels(map[string]string{flow.LabelManagedBy: "platform"})
				if !(&client.CreateOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency {
					waits++
				}
			}
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			data, err := patch.Data(object)
			if err != nil {
				return err
			}
			if relabels && patch.Type() == types.ApplyPatchType {
				data = []byte(strings.Replace(string(data), `managed-by":"opdock"`, `managed-by":"platform"`, 1))
			}
			if relabels && !(&client.PatchOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency {
				waits++
			}
			return c.Patch(ctx, object, client.RawPatch(patch.Type(), data), options...)
		},
	})
	pass := func() (verdict string, err error) {
		_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "n", Name: "web"}})
		var owner appv1.AppService
		if err := r.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "web"}, &owner); err != nil {
			t.Fatal(err)
		}
		if ready := meta.FindStatusCondition(owner.Status.Conditions, "Ready"); ready != nil {
			return ready.Reason + " " + ready.Message, err
		}
		return "", err
	}
	for range 3 {
		if ready, err := pass(); err == nil || !strings.HasPrefix(ready, "LabelChanged ") || !strings.Contains(ready, `app.kubernetes.io/managed-by="platform"`) {
			t.Errorf("got %v and %s", err, ready)
		}
	}
	// The next child of the type.
	if err := r.Delete(t.Context(), r.deployment()); err != nil {
		t.Fatal(err)
	}
	if _, err := pass(); err == nil {
		t.Error("it is not retried")
	}
	if waits > 1 {
		t.Errorf("reads wait for %d writes of objects that no cache gets", waits)
	}
	relabels = false
	if ready, err := pass(); err != nil || strings.HasPrefix(ready, "LabelChanged") {
		t.Errorf("got %v and %s", err, ready)
	}
	if live := r.deployment(); live.Labels[flow.LabelManagedBy] != flow.ManagedBy {
		t.Errorf("the labels are %v", live.Labels)
	}
}
