// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why"
)

// One call in place of ctrl.NewControllerManagedBy records all watches and the reconciler.
func ExampleControllerManagedBy() {
	recorder := why.New(why.Options{Logger: ctrl.Log.WithName("why")})
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{NewClient: recorder.NewClient})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	err = why.ControllerManagedBy(mgr, recorder).
		For(&appsv1.Deployment{}).
		Owns(&corev1.Pod{}).
		Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	// Only this machine may look; opdock why --address http://127.0.0.1:8082 does.
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return recorder.Serve(ctx, "127.0.0.1:8082") }))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// Handlers and the reconciler can be wrapped one by one, wherever they are used. Here they are called by hand.
func ExampleController_Handler() {
	recorder := why.New(why.Options{})
	c := recorder.Controller("web", &appsv1.Deployment{})
	h := c.Handler(&handler.EnqueueRequestForObject{})
	r := c.Reconciler(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }))

	deployment := func(version string, replicas int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "web", ResourceVersion: version,
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl-scale", Subresource: "scale", Time: ptr.To(metav1.Now())}},
			},
			Spec: appsv1.DeploymentSpec{Replicas: &replicas},
		}
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	h.Update(context.Background(), event.UpdateEvent{ObjectOld: deployment("1", 3), ObjectNew: deployment("2", 1)}, queue)

	request, _ := queue.Get()
	if _, err := r.Reconcile(context.Background(), request); err != nil {
		fmt.Println(err)
	}
	for _, record := range recorder.Records(why.Query{}) {
		for _, cause := range record.Causes {
			fmt.Println(cause.String())
		}
		fmt.Println(record.Outcome, record.Written, "writes")
	}
	// Output:
	// updated Deployment default/web spec.replicas 3→1 by kubectl-scale (scale)
	// succeeded 0 writes
}
