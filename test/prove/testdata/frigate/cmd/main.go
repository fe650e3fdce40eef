// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// The operator of the kind Frigate, with defects that the variable DEFECT chooses. Without it, it has none.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	kind   = schema.GroupVersionKind{Group: "navy.example.com", Version: "v1", Kind: "Frigate"}
	defect = os.Getenv("DEFECT")
	mutiny *time.Timer // ends the operator
	known  sync.Map    // the generations of frigates that are done, by name
)

const (
	finalizer = "navy.example.com/berth"
	harbour   = "kube-public" // where each frigate has a berth, which no owner reference can lead to
)

func main() {
	serve(kind, &corev1.ConfigMap{}, func(c client.Client) reconcile.Reconciler { return &reconciler{c} })
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	frigate := blank(kind)
	if err := r.Get(ctx, request.NamespacedName, frigate); err != nil {
		if apierrors.IsNotFound(err) && defect == "knows-names" {
			known.Delete(request.Name) // which it does not see of one that is created again at once
		}
		if apierrors.IsNotFound(err) && defect == "trusts-cache" {
			// Its cache may be older than the frigate.
			err = r.Delete(ctx, berthOf(request.NamespacedName))
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if defect == "impatient" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 800*time.Millisecond)
		defer cancel()
	}
	err := r.sail(ctx, frigate)
	switch {
	case defect == "gives-up" && err != nil, defect == "impatient" && ctx.Err() != nil:
		return ctrl.Result{}, nil // it will never know
	case defect == "resigns" && apierrors.IsForbidden(err):
		return ctrl.Result{}, nil // as if it could never be allowed
	case defect == "dies-of-conflicts" && apierrors.IsConflict(err):
		panic("a conflict")
	}
	return ctrl.Result{}, err
}

func (r *reconciler) sail(ctx context.Context, frigate *unstructured.Unstructured) error {
	berth := berthOf(client.ObjectKeyFromObject(frigate))
	if defect == "ties-up-again" && controllerutil.AddFinalizer(frigate, finalizer) {
		if err := r.Update(ctx, frigate); err != nil {
			return err // the API server accepts no new finalizers during a deletion
		}
	}
	if frigate.GetDeletionTimestamp() != nil && defect != "sails-on" {
		return r.leave(ctx, frigate, berth)
	}
	remembers := defect == "knows-names" || defect == "once"
	if done, found := known.Load(frigate.GetName()); remembers && found && done == frigate.GetGeneration() {
		return nil // another of the same name has the same number
	}
	if err := r.moor(ctx, frigate, berth); err != nil {
		return err
	}
	if err := r.giveOrders(ctx, frigate); err != nil {
		return err
	}
	if err := r.report(ctx, frigate); err != nil {
		return err
	}
	known.Store(frigate.GetName(), frigate.GetGeneration())
	return nil
}

// berthOf is the berth of a frigate. One with the same name may sail in another namespace.
func berthOf(frigate client.ObjectKey) *corev1.ConfigMap {
	name := "berth-" + frigate.Name
	if frigate.Namespace != metav1.NamespaceDefault && defect != "shares-berths" {
		name = "berth-" + frigate.Namespace + "-" + frigate.Name
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: harbour, Name: name}}
}

// moor takes a berth, which a finalizer frees. Some defects show only without both.
func (r *reconciler) moor(ctx context.Context, frigate *unstructured.Unstructured, berth *corev1.ConfigMap) error {
	if defect == "knows-names" || defect == "old-status" || defect == "sails-on" {
		return nil
	}
	if defect != "no-finalizer" && controllerutil.AddFinalizer(frigate, finalizer) {
		if err := r.Update(ctx, frigate); err != nil {
			return err
		}
	}
	if err := r.Create(ctx, berth); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// leave frees the berth.
func (r *reconciler) leave(ctx context.Context, frigate *unstructured.Unstructured, berth *corev1.ConfigMap) error {
	free := func() error { return client.IgnoreNotFound(r.Delete(ctx, berth)) }
	forget := func() error {
		if !controllerutil.RemoveFinalizer(frigate, finalizer) {
			return nil
		}
		return client.IgnoreNotFound(r.Update(ctx, frigate))
	}
	if defect == "forgets-first" {
		free, forget = forget, free
	}
	if err := free(); err != nil {
		return err
	}
	return forget()
}

// giveOrders makes the ConfigMap be as the spec says.
func (r *reconciler) giveOrders(ctx context.Context, frigate *unstructured.Unstructured) error {
	guns, _, _ := unstructured.NestedInt64(frigate.Object, "spec", "guns")
	wanted := map[string]string{"guns": strconv.FormatInt(guns, 10)}
	if captain, found, _ := unstructured.NestedString(frigate.Object, "spec", "captain"); found {
		wanted["captain"] = captain
	}
	if defect == "fears-creation" && frigate.GetGeneration() == 1 && wanted["captain"] != "hull" {
		panic("a frigate that was not there before")
	}
	cargo, _, _ := unstructured.NestedStringMap(frigate.Object, "spec", "cargo")
	for good, amount := range cargo {
		wanted["cargo."+good] = amount
	}
	ship := frigate.GetName()
	if defect == "cuts-names" {
		ship = ship[:min(len(ship), 40)] // which may be the name of another frigate
	}
	orders := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: frigate.GetNamespace(), Name: ship + "-orders"}}
	own := func() error { return controllerutil.SetControllerReference(frigate, orders, r.Scheme()) }
	switch defect {
	case "random-name", "old-status":
		return r.giveRandomOrders(ctx, frigate, orders, wanted, own)
	case "no-owner":
		own = func() error { return nil }
	case "create-only":
		err := r.Get(ctx, client.ObjectKeyFromObject(orders), orders)
		if err == nil && orders.Data["guns"] != "" && frigate.GetGeneration() == observed(frigate) {
			return nil // somebody may have changed it since then
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, orders, func() error {
		switch captain, known := orders.Data["captain"]; {
		case defect == "ignores-captain" && known:
			wanted["captain"] = captain
		case defect == "mutinies" && known:
			if mutiny != nil {
				mutiny.Stop()
			}
			if captain != wanted["captain"] {
				mutiny = time.AfterFunc(time.Second, func() { os.Exit(1) }) // later than a run that looks well ends
			}
			wanted["captain"] = captain
		case defect == "keeps-cargo":
			for good, amount := range orders.Data {
				if _, still := wanted[good]; !still {
					wanted[good] = amount
				}
			}
		}
		orders.Data = wanted
		return own()
	})
	return err
}

// giveRandomOrders remembers the name only after it has created the object.
func (r *reconciler) giveRandomOrders(ctx context.Context, frigate *unstructured.Unstructured, orders *corev1.ConfigMap, wanted map[string]string, own func() error) error {
	name, _, _ := unstructured.NestedString(frigate.Object, "status", "orders")
	if name != "" {
		return nil
	}
	orders.Name = fmt.Sprintf("%s-orders-%d", frigate.GetName(), time.Now().UnixNano()%1000000)
	orders.Data = wanted
	if err := errors.Join(own(), r.Create(ctx, orders)); err != nil {
		return err
	}
	before := frigate.DeepCopy()
	_ = unstructured.SetNestedField(frigate.Object, orders.Name, "status", "orders")
	return r.Status().Patch(ctx, frigate, client.MergeFrom(before))
}

func observed(frigate *unstructured.Unstructured) int64 {
	number, _, _ := unstructured.NestedInt64(frigate.Object, "status", "observedGeneration")
	return number
}

// report writes the status if it has changed.
func (r *reconciler) report(ctx context.Context, frigate *unstructured.Unstructured) error {
	condition := map[string]any{"type": "Ready", "status": "True", "reason": "AtSea", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}
	if defect == "restless" {
		condition["message"] = time.Now().String()
	} else if observed(frigate) == frigate.GetGeneration() {
		return nil
	}
	before := frigate.DeepCopy()
	_ = unstructured.SetNestedField(frigate.Object, frigate.GetGeneration(), "status", "observedGeneration")
	_ = unstructured.SetNestedSlice(frigate.Object, []any{condition}, "status", "conditions")
	return r.Status().Patch(ctx, frigate, client.MergeFrom(before))
}
