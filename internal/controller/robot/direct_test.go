// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package robot

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
	"github.com/opdock/opdock/internal/flow"
)

// reconciled is a world without a control plane: a reconciler whose cache holds only what has the label of the fleet.
type reconciled struct {
	client.Client
	*flow.Reconciler[*robotv1.Robot]
	t     *testing.T
	clock *testclock.FakePassiveClock
}

func newReconciled(t *testing.T, robot *robotv1.Robot) *reconciled {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, robotv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(robot).WithStatusSubresource(robot, &appsv1.Deployment{}).
		WithReturnManagedFields().WithIndex(&appsv1.Deployment{}, flow.OwnedIndex, flow.OwnedKeys("Robot")).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				object.SetUID(uuid.NewUUID())
				return c.Create(ctx, object, options...)
			},
		}).Build()
	isHidden := func(object client.Object) bool {
		_, isOwner := object.(*robotv1.Robot)
		return !isOwner && object.GetLabels()[flow.LabelManagedBy] != flow.ManagedBy
	}
	cache := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			found := object.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, key, found, options...); err != nil {
				return err
			}
			if isHidden(found) {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return c.List(ctx, list, append(options, client.MatchingLabels{flow.LabelManagedBy: flow.ManagedBy})...)
		},
	})
	r, clock := &Reconciler{Client: cache}, testclock.NewFakePassiveClock(time.Now())
	return &reconciled{server, &flow.Reconciler[*robotv1.Robot]{
		Kind: r.Kind(), Client: cache, Reader: server, Events: events.NewFakeRecorder(100), Clock: clock,
	}, t, clock}
}

// pass reconciles the Robot, and returns why it is Ready or not.
func (r *reconciled) pass() string {
	r.t.Helper()
	r.clock.SetTime(r.clock.Now().Add(flow.MinorInterval))
	if _, err := r.Reconcile(r.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "n", Name: "one"}}); err != nil {
		r.t.Fatal(err)
	}
	ready := meta.FindStatusCondition(r.robot().Status.Conditions, "Ready")
	if ready == nil {
		return ""
	}
	return ready.Reason
}

func (r *reconciled) robot() *robotv1.Robot {
	r.t.Helper()
	robot := &robotv1.Robot{}
	if err := r.Get(r.t.Context(), client.ObjectKey{Namespace: "n", Name: "one"}, robot); err != nil {
		r.t.Fatal(err)
	}
	return robot
}

// rename gives the Deployment another name.
func (r *reconciled) rename(name string) {
	r.t.Helper()
	robot := r.robot()
	robot.Spec.DeploymentName = name
	robot.Generation++
	if err := r.Update(r.t.Context(), robot); err != nil {
		r.t.Fatal(err)
	}
}

// edit changes a Deployment and its status.
func (r *reconciled) edit(name string, change func(*appsv1.Deployment)) {
	r.t.Helper()
	live := &appsv1.Deployment{}
	if err := r.Get(r.t.Context(), client.ObjectKey{Namespace: "n", Name: name}, live); err != nil {
		r.t.Fatal(err)
	}
	change(live)
	status := live.Status
	if err := r.Update(r.t.Context(), live, client.FieldOwner("editor")); err != nil {
		r.t.Fatal(err)
	}
	live.Status = status
	if err := r.Status().Update(r.t.Context(), live); client.IgnoreNotFound(err) != nil {
		r.t.Fatal(err)
	}
}

func rollOut(live *appsv1.Deployment) {
	live.Status = appsv1.DeploymentStatus{
		ObservedGeneration: live.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True"}},
	}
}

func newRobot(name string) *robotv1.Robot {
	return &robotv1.Robot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "one", UID: "u", Generation: 1}, Spec: robotv1.RobotSpec{DeploymentName: name},
	}
}

// The cache does not hold the old Deployment, whose label was removed, and a finalizer keeps it and its workers.
func TestNotReadyWhileAHiddenPredecessorExists(t *testing.T) {
	r := newReconciled(t, newRobot("old"))
	r.pass()
	r.edit("old", rollOut)
	if got := r.pass(); got != flow.ReasonReady {
		t.Fatalf("the reason is %s", got)
	}
	r.edit("old", func(live *appsv1.Deployment) {
		delete(live.Labels, flow.LabelManagedBy)
		live.Finalizers = []string{"example.com/hold"}
	})
	r.rename("new")
	r.pass()
	r.edit("new", rollOut)
	for range 3 {
		if got := r.pass(); got != "RemovingPredecessor" {
			t.Errorf("the reason is %s", got)
		}
	}
	r.edit("old", func(live *appsv1.Deployment) { live.Finalizers = nil })
	if got := r.pass(); got != flow.ReasonReady || r.robot().Status.DeploymentName != "new" {
		t.Errorf("the reason is %s, and the status names %s", got, r.robot().Status.DeploymentName)
	}
}

// The Robot before this one was deleted with --cascade=orphan, and its Deployment had another name.
func TestADeploymentOfTheLastRobotIsRemoved(t *testing.T) {
	const us = "opdock-robot"
	for name, test := range map[string]struct {
		creator string
		edit    func(*appsv1.Deployment)
		gone    bool
	}{
		"without an owner": {us, func(*appsv1.Deployment) {}, true},
		"a copy by a user": {"kubectl-create", func(*appsv1.Deployment) {}, false},
		"of another Robot": {us, func(d *appsv1.Deployment) { d.Labels[flow.LabelInstance] = "two" }, false},
		"of another kind":  {us, func(d *appsv1.Deployment) { d.Labels[flow.LabelKind] = "appservice" }, false},
		"with another owner": {us, func(d *appsv1.Deployment) {
			d.OwnerReferences = []metav1.OwnerReference{{UID: "x", Controller: new(true)}}
		}, false},
		"with another manager": {us, func(d *appsv1.Deployment) { d.Labels[flow.LabelManagedBy] = "Helm" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReconciled(t, newRobot("new"))
			old := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "old", Labels: map[string]string{
				flow.LabelManagedBy: flow.ManagedBy, flow.LabelKind: labelKind, flow.LabelInstance: "one",
			}}, Spec: appsv1.DeploymentSpec{Paused: true}} // a field of ours
			test.edit(old)
			if err := r.Create(t.Context(), old, client.FieldOwner(test.creator)); err != nil {
				t.Fatal(err)
			}
			r.edit("old", rollOut)
			r.pass()
			r.edit("old", func(*appsv1.Deployment) {}) // it is still there
			r.edit("new", rollOut)
			r.pass()
			if got := r.pass(); got != flow.ReasonReady {
				t.Errorf("the reason is %s", got)
			}
			if err := r.Get(t.Context(), client.ObjectKeyFromObject(old), old); apierrors.IsNotFound(err) != test.gone {
				t.Errorf("reading it: %v", err)
			}
		})
	}
}
