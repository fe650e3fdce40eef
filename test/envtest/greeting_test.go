// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Greeting is the custom resource of this suite: its text goes into a ConfigMap.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   GreetingSpec   `json:"spec"`
	Status GreetingStatus `json:"status,omitzero"`
}

type GreetingSpec struct {
	Text string `json:"text"`
}

type GreetingStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

func (g *Greeting) DeepCopyInto(out *Greeting) {
	*out = *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

func (g *Greeting) DeepCopyObject() runtime.Object {
	out := &Greeting{}
	g.DeepCopyInto(out)
	return out
}

type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Greeting `json:"items"`
}

func (l *GreetingList) DeepCopyInto(out *GreetingList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Greeting, len(l.Items))
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
}

func (l *GreetingList) DeepCopyObject() runtime.Object {
	out := &GreetingList{}
	l.DeepCopyInto(out)
	return out
}

func addToScheme(scheme *runtime.Scheme) {
	version := schema.GroupVersion{Group: "test.opdock.dev", Version: "v1"}
	scheme.AddKnownTypes(version, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, version)
}

// reconciler keeps the ConfigMap of each Greeting.
type reconciler struct {
	client.Client
}

func (r *reconciler) Reconcile(ctx context.Context, greeting *Greeting) (ctrl.Result, error) {
	target := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: greeting.Namespace, Name: greeting.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, target, func() error {
		target.Data = map[string]string{"text": greeting.Spec.Text}
		return controllerutil.SetControllerReference(greeting, target, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the ConfigMap: %w", err)
	}
	if greeting.Status.ObservedGeneration == greeting.Generation {
		return ctrl.Result{}, nil
	}
	greeting.Status.ObservedGeneration = greeting.Generation
	return ctrl.Result{}, r.Status().Update(ctx, greeting)
}

func (r *reconciler) setUp(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		For(&Greeting{}).
		Owns(&corev1.ConfigMap{}).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// validator is the webhook: greetings are polite.
type validator struct{}

func (validator) ValidateCreate(_ context.Context, greeting *Greeting) (admission.Warnings, error) {
	if strings.Contains(greeting.Spec.Text, "!") {
		return nil, errors.New("do not shout")
	}
	return nil, nil
}

func (v validator) ValidateUpdate(ctx context.Context, _, greeting *Greeting) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, greeting)
}

func (validator) ValidateDelete(context.Context, *Greeting) (admission.Warnings, error) {
	return nil, nil
}
