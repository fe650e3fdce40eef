// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/flow"
)

// reconciled is a world without a control plane: a reconciler whose cache holds only what has the label of the fleet.
type reconciled struct {
	client.Client
	*flow.Reconciler[*appv1.AppService]
	t *testing.T
}

func newReconciled(t *testing.T, app *appv1.AppService) *reconciled {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, appv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	app.UID = "u"
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(app).WithStatusSubresource(app, &appsv1.Deployment{}).
		WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			object.SetUID(uuid.NewUUID())
			if all := (&client.CreateOptions{}).ApplyOptions(options); len(all.DryRun) > 0 {
				return apierrors.NewAlreadyExists(schema.GroupResource{}, object.GetName())
			}
			return c.Create(ctx, object, options...)
		},
	}).Build()
	cache := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			found := object.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, key, found, options...); err != nil {
				return err
			}
			if _, isOwner := object.(*appv1.AppService); !isOwner && found.GetLabels()[flow.LabelManagedBy] != flow.ManagedBy {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	r := &Reconciler{Client: cache}
	return &reconciled{server, &flow.Reconciler[*appv1.AppService]{
		Kind: r.Kind(), Client: cache, Reader: server, Events: events.NewFakeRecorder(100), Clock: testclock.NewFakePassiveClock(time.Now()),
	}, t}
}

func (r *reconciled) pass() {
	r.t.Helper()
	if _, err := r.Reconcile(r.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "n", Name: "web"}}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reconciled) deployment() *appsv1.Deployment {
	r.t.Helper()
	live := &appsv1.Deployment{}
	if err := r.Get(r.t.Context(), client.ObjectKey{Namespace: "n", Name: "web"}, live); err != nil {
		r.t.Fatal(err)
	}
	return live
}

// rollOut makes the Deployment available, as its controller does.
func (r *reconciled) rollOut() {
	r.t.Helper()
	live := r.deployment()
	live.Status = appsv1.DeploymentStatus{
		ObservedGeneration: live.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True"}},
	}
	if err := r.Status().Update(r.t.Context(), live); err != nil {
		r.t.Fatal(err)
	}
}

const autoscaledWeb = `{image: i, size: 2, autoscaling: {minReplicas: 2, maxReplicas: 20}}`

// The cache loses a Deployment whose label is removed. The number of pods must not fall back to the one in the spec.
func TestRemovedLabelKeepsTheAutoscalersNumber(t *testing.T) {
	r := newReconciled(t, app(t, autoscaledWeb))
	r.pass()
	live := r.deployment()
	live.Spec.Replicas = ptr.To[int32](15)
	if err := r.Update(t.Context(), live, client.FieldOwner("autoscaler")); err != nil {
		t.Fatal(err)
	}
	r.pass()
	live = r.deployment()
	delete(live.Labels, flow.LabelManagedBy)
	if err := r.Update(t.Context(), live, client.FieldOwner("kubectl-label")); err != nil {
		t.Fatal(err)
	}
	r.pass()
	live = r.deployment()
	if got := ptr.Deref(live.Spec.Replicas, 1); got != 15 {
		t.Errorf("the autoscaler's 15 pods became %d", got)
	}
	if live.Labels[flow.LabelManagedBy] != flow.ManagedBy {
		t.Error("the label was not restored")
	}
}

// A Deployment that is adopted has not been in the cache before.
func TestAdoptionKeepsTheNumberOfPods(t *testing.T) {
	owner := app(t, autoscaledWeb)
	owner.Annotations = map[string]string{flow.AdoptAnnotation: "true"}
	r := newReconciled(t, owner)
	existing := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](10), Selector: &metav1.LabelSelector{MatchLabels: selector(owner)},
	}}
	if err := r.Create(t.Context(), existing, client.FieldOwner("helm")); err != nil {
		t.Fatal(err)
	}
	r.pass()
	live := r.deployment()
	if got := ptr.Deref(live.Spec.Replicas, 1); got != 10 {
		t.Errorf("10 pods became %d", got)
	}
	if !metav1.IsControlledBy(live, owner) {
		t.Error("it was not adopted")
	}
}

// kubectl replace with a manifest that has neither the labels nor the owner reference.
func TestAReplacedChildIsAdoptedAgain(t *testing.T) {
	for _, test := range []struct {
		name    string
		replace func(*appsv1.Deployment)
		want    bool
	}{
		{"without metadata", func(live *appsv1.Deployment) { live.Labels = nil }, true},
		{"with other labels", func(live *appsv1.Deployment) { live.Labels = map[string]string{"a": "b"} }, true},
		{"with the label of another owner", func(live *appsv1.Deployment) {
			live.Labels = map[string]string{flow.LabelManagedBy: flow.ManagedBy, flow.LabelInstance: "other"}
		}, false},
		{"never set by us", func(live *appsv1.Deployment) {
			live.Labels = nil
			live.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		}, false},
		{"controlled by another owner", func(live *appsv1.Deployment) {
			live.Labels = nil
			live.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "x", Controller: ptr.To(true)}}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			owner := app(t, `{image: i, size: 2}`)
			r := newReconciled(t, owner)
			r.pass()
			live := r.deployment()
			live.OwnerReferences, live.Annotations = nil, nil
			live.Spec.Paused = true
			test.replace(live)
			if err := r.Update(t.Context(), live, client.FieldOwner("kubectl-replace")); err != nil {
				t.Fatal(err)
			}
			r.pass()
			now := r.deployment()
			if got := metav1.IsControlledBy(now, owner) && !now.Spec.Paused && now.Labels[flow.LabelInstance] == owner.Name; got != test.want {
				t.Errorf("adopted is %v: %+v, paused: %v", got, now.ObjectMeta, now.Spec.Paused)
			}
			if !test.want && now.ResourceVersion != live.ResourceVersion {
				t.Error("it was changed")
			}
		})
	}
}

// A rival that also removes what tells that the configuration has not changed is a rival all the same.
func TestContestWithARivalThatHidesItsTraces(t *testing.T) {
	for name, strip := range map[string]func(*appsv1.Deployment){
		"hash":            func(live *appsv1.Deployment) { delete(live.Annotations, flow.AppliedAnnotation) },
		"label":           func(live *appsv1.Deployment) { delete(live.Labels, flow.LabelManagedBy) },
		"owner reference": func(live *appsv1.Deployment) { live.OwnerReferences = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReconciled(t, app(t, `{image: i}`))
			r.pass()
			for range 20 {
				live := r.deployment()
				strip(live)
				if err := r.Update(t.Context(), live, client.FieldOwner("rival")); err != nil {
					t.Fatal(err)
				}
				if live.Labels[flow.LabelManagedBy] == "" {
					// What a cache reports that selects by the label.
					r.IgnoreOwnWrites().Delete(event.DeleteEvent{Object: live})
				}
				r.pass()
			}
			var owner appv1.AppService
			if err := r.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "web"}, &owner); err != nil {
				t.Fatal(err)
			}
			if ready := meta.FindStatusCondition(owner.Status.Conditions, "Ready"); ready == nil || ready.Reason != flow.ReasonContested {
				t.Errorf("got %+v", ready)
			}
		})
	}
}

// Managed fields are sets, so they do not show that the variables were reordered, which refer to each other.
func TestTheOrderOfVariablesIsRestored(t *testing.T) {
	r := newReconciled(t, app(t, `{image: i, envs: [{name: A, value: a}, {name: B, value: $(A)}, {name: C, value: $(B)}]}`))
	for range 2 {
		r.pass()
		live := r.deployment()
		slices.Reverse(live.Spec.Template.Spec.Containers[0].Env)
		if err := r.Update(t.Context(), live, client.FieldOwner("person")); err != nil {
			t.Fatal(err)
		}
		r.pass()
		live = r.deployment()
		if env := live.Spec.Template.Spec.Containers[0].Env; env[0].Name != "A" || env[1].Name != "B" || env[2].Name != "C" {
			t.Errorf("the variables are %+v", env)
		}
		r.pass()
		if quiet := r.deployment(); quiet.ResourceVersion != live.ResourceVersion {
			t.Error("it is written again")
		}
	}
}

// A rival makes each new Service headless, which only a replacement can correct.
func TestContestWithARivalThatMakesServicesHeadless(t *testing.T) {
	r := newReconciled(t, app(t, `{image: i, ports: [{port: 80}]}`))
	replaced := map[types.UID]bool{}
	for range 50 {
		r.pass()
		var live corev1.Service
		if err := r.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "web"}, &live); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		replaced[live.UID] = true
		live.Spec.ClusterIP = corev1.ClusterIPNone
		if err := r.Update(t.Context(), &live, client.FieldOwner("rival")); err != nil {
			t.Fatal(err)
		}
	}
	var owner appv1.AppService
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "web"}, &owner); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(owner.Status.Conditions, "Ready")
	if ready == nil || ready.Reason != flow.ReasonContested || !strings.Contains(ready.Message, "spec.clusterIP was set to None") {
		t.Errorf("after %d Services: %+v", len(replaced), ready)
	}
}

// A child that nothing holds is gone at once. A status about its deletion would be one more write for each change.
func TestNoStatusAboutAChildThatIsGoneAtOnce(t *testing.T) {
	r := newReconciled(t, app(t, `{image: i, ports: [{port: 80}]}`))
	ready := func() string {
		t.Helper()
		r.rollOut()
		r.pass()
		now := &appv1.AppService{}
		if err := r.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "web"}, now); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(now.Status.Conditions, "Ready").Reason
	}
	r.pass()
	if got := ready(); got != "Ready" {
		t.Fatalf("the reason is %s", got)
	}
	now := &appv1.AppService{}
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "web"}, now); err != nil {
		t.Fatal(err)
	}
	now.Spec.Ports = nil
	now.Generation++
	if err := r.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if got := ready(); got != "Ready" {
		t.Errorf("the reason is %s", got)
	}
}
