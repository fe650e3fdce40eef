// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/project"
)

// keptNamespaces belong to the cluster, whoever lists them in a manifest.
var keptNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

// explainTimeout is for finding out what keeps objects, once there has been enough waiting for them to go.
const explainTimeout = 5 * time.Second

// StuckError is returned when deleted objects do not disappear in time.
type StuckError struct {
	Reasons []string
	Cause   error
}

func (e *StuckError) Error() string { return strings.Join(e.Reasons, "; ") }

func (e *StuckError) Unwrap() error { return e.Cause }

// Delete deletes the objects and returns when they are gone. Those that do not exist are no error. It returns what
// happened up to an error.
func (s *Server) Delete(ctx context.Context, objects []*unstructured.Unstructured, o Options) ([]Outcome, error) {
	ordered := orderOfDeletion(s.known(objects, o.Namespace))
	var outcomes []Outcome
	// What is of one stage goes at once; only then the next.
	for len(ordered) > 0 {
		stage := stageOf(ordered[0])
		end := slices.IndexFunc(ordered, func(object *unstructured.Unstructured) bool { return stageOf(object) != stage })
		if end < 0 {
			end = len(ordered)
		}
		for _, object := range ordered[:end] {
			action, err := s.deleteOne(ctx, object, o.DryRun)
			if err != nil {
				return outcomes, err
			}
			outcomes = append(outcomes, outcome(object, action))
		}
		if !o.DryRun {
			if err := s.awaitGone(ctx, ordered[:end]); err != nil {
				return outcomes, err
			}
		}
		for _, one := range outcomes[len(outcomes)-end:] {
			if o.Done != nil {
				o.Done(one)
			}
		}
		ordered = ordered[end:]
	}
	return outcomes, nil
}

// known returns copies that have the namespace that they need. Kinds that the server does not know have none.
func (s *Server) known(objects []*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, object := range objects {
		kind := object.GroupVersionKind()
		if kind.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) && slices.Contains(keptNamespaces, object.GetName()) {
			continue
		}
		object = object.DeepCopy()
		mapping, err := s.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		all = append(all, object)
	}
	return all
}

func (s *Server) deleteOne(ctx context.Context, object *unstructured.Unstructured, dryRun bool) (Action, error) {
	var options []client.DeleteOption
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if stageOf(object) == stageWorkloads {
		// It is not gone before its pods are.
		options = append(options, client.PropagationPolicy(metav1.DeletePropagationForeground))
	}
	err := s.client.Delete(ctx, object.DeepCopy(), options...)
	switch {
	case err == nil:
		return Deleted, nil
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return Absent, nil
	case apierrors.IsConflict(err) && stageOf(object) == stageNamespaces:
		return Deleted, nil // somebody else has begun it
	default:
		return "", fmt.Errorf("deleting %s: %w", title(object), err)
	}
}

func (s *Server) awaitGone(ctx context.Context, objects []*unstructured.Unstructured) error {
	err := wait.PollUntilContextCancel(ctx, lookInterval, true, func(ctx context.Context) (bool, error) {
		left, err := s.present(ctx, objects)
		return err == nil && len(left) == 0, err
	})
	if err == nil || ctx.Err() == nil {
		return err
	}
	stuck := &StuckError{Cause: context.Cause(ctx)}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// The time is over, but not that to ask why.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTimeout)
		defer cancel()
		left, err := s.present(ctx, objects)
		if err != nil {
			return errors.Join(stuck, err)
		}
		if len(left) == 0 {
			return nil
		}
		for _, live := range left {
			stuck.Reasons = append(stuck.Reasons, fmt.Sprintf("%s has not been deleted: %s", title(live), s.whyStill(ctx, live)))
		}
	}
	return stuck
}

// present are those objects that are there, as they are there.
func (s *Server) present(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var left []*unstructured.Unstructured
	for _, object := range objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GroupVersionKind())
		err := s.client.Get(ctx, client.ObjectKeyFromObject(object), live)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", title(object), err)
		default:
			left = append(left, live)
		}
	}
	return left, nil
}

// whyStill says what keeps an object that is being deleted.
func (s *Server) whyStill(ctx context.Context, live *unstructured.Unstructured) string {
	if project.IsCRD(live) {
		if left, err := s.Instances(ctx, []*unstructured.Unstructured{live}); err == nil && len(left) > 0 {
			return left[0].String()
		}
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, one := range conditions {
		// A namespace tells what is left in it.
		condition, ok := one.(map[string]any)
		if ok && condition["status"] == "True" && (condition["type"] == "NamespaceContentRemaining" || condition["type"] == "NamespaceFinalizersRemaining") {
			return fmt.Sprint(condition["message"])
		}
	}
	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		return "it is waiting for finalizers: " + strings.Join(finalizers, ", ")
	}
	return "the server has not removed it yet"
}

// Remainder is what there is of a kind.
type Remainder struct {
	Definition string `json:"definition"`
	Kind       string `json:"kind"`
	Count      int    `json:"count"`
	// Example is one of them.
	Example string `json:"example"`
	// Finalizers are those of the example: somebody has to remove them before it is gone.
	Finalizers []string `json:"finalizers,omitempty"`
}

func (r Remainder) String() string {
	text := fmt.Sprintf("%d objects of kind %s, such as %s", r.Count, r.Kind, r.Example)
	if r.Count == 1 {
		text = fmt.Sprintf("%s %s", r.Kind, r.Example)
	}
	if len(r.Finalizers) > 0 {
		text += ", which is waiting for finalizers: " + strings.Join(r.Finalizers, ", ")
	}
	return text
}

// Instances are the objects that there are of the defined kinds, one entry for each kind that has any.
func (s *Server) Instances(ctx context.Context, definitions []*unstructured.Unstructured) ([]Remainder, error) {
	var all []Remainder
	for _, definition := range definitions {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(definition.GroupVersionKind())
		err := s.client.Get(ctx, client.ObjectKeyFromObject(definition), live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", title(definition), err)
		}
		versions := servedVersions(live)
		if len(versions) == 0 {
			continue
		}
		kind := project.GroupKindOf(live)
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.WithVersion(versions[0]))
		list.Kind += "List"
		err = s.client.List(ctx, list)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || len(list.Items) == 0 && err == nil {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
		}
		first := list.Items[0]
		example := first.Name
		if first.Namespace != "" {
			example = first.Namespace + "/" + first.Name
		}
		all = append(all, Remainder{
			Definition: live.GetName(), Kind: kind.Kind, Count: len(list.Items), Example: example, Finalizers: first.Finalizers,
		})
	}
	return all, nil
}
