// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/crdspec"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/scenario"
)

const (
	waitInterval = 50 * time.Millisecond
	waitPatience = 30 * time.Second
)

// script turns a scenario into steps.
type script struct {
	namespace string
	// own are the project's kinds, and whether their objects are in namespaces.
	own map[schema.GroupKind]bool
	// applied are all objects that steps apply, in their order, and placed those of them that name no namespace.
	applied, placed []*unstructured.Unstructured
}

// move takes the objects that name no namespace to another one.
func (p *script) move(namespace string) {
	p.namespace = namespace
	for _, object := range p.placed {
		object.SetNamespace(namespace)
	}
}

// restStep is the name of the step that is added to a scenario that leaves its objects there.
const restStep = "change nothing"

// stepsOf adds a scenario to the options of a campaign. Objects without a namespace get the given one.
func stepsOf(e *engine.Options, s *scenario.Scenario, definitions []*unstructured.Unstructured, namespace string) {
	play := &script{namespace: namespace, own: map[schema.GroupKind]bool{}}
	for _, definition := range definitions {
		scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
		play.own[crdspec.Of(definition).GroupKind()] = scope != "Cluster"
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Apply != nil {
			for _, object := range step.Apply.Objects {
				play.add(e, object)
			}
		}
	}
	e.Namespace = namespace
	if !play.namesNamespace(s) {
		e.Move = play.move
	}
	var there []*unstructured.Unstructured
	for i := range s.Steps {
		step := &s.Steps[i]
		before := there
		there = play.after(step, before)
		e.Steps = append(e.Steps, engine.Step{
			Name: step.Name, Deletes: play.deletesOwn(before, there), Ends: isEnd(step, before, there), Subjects: len(play.ownIn(before)), Elsewhere: play.changesElsewhere(step), Optional: step.Optional,
			Do: func(ctx context.Context, objects client.Client) error { return play.do(ctx, objects, step) },
		})
	}
	if last := len(s.Steps) - 1; last >= 0 && s.Steps[last].Delete == nil && s.Steps[last].Wait == nil {
		// What is there before a step can be disturbed without it. Otherwise that would exclude what the last step leads to.
		e.Steps = append(e.Steps, engine.Step{Name: restStep, Subjects: len(play.ownIn(there)), Do: func(context.Context, client.Client) error { return nil }})
	}
	if s.Settle != (scenario.Settle{}) {
		e.Settling = engine.DefaultSettling
		if s.Settle.Quiet > 0 {
			e.Settling.Quiet, e.Settling.Unmarked = s.Settle.Quiet, max(s.Settle.Quiet, e.Settling.Unmarked)
		}
		e.Settling.Patience = s.Settle.Patience
		if s.Settle.Bound > 0 {
			e.Settling.Bound = s.Settle.Bound
		}
	}
	e.Ignores = func(o *engine.Observation) string {
		if ignored := s.Ignores(o.Verdict, o.Family, o.Object, o.Fields); ignored != nil {
			return ignored.Reason
		}
		return ""
	}
}

// namesNamespace reports whether a step names the namespace of an object that does not do so itself.
func (p *script) namesNamespace(s *scenario.Scenario) bool {
	return slices.ContainsFunc(s.Steps, func(step scenario.Step) bool {
		refs := refsIn(&step)
		if step.Wait != nil {
			refs = append(refs, step.Wait.Ref)
		}
		return slices.ContainsFunc(refs, func(ref scenario.Ref) bool { return ref.Namespace != "" && contains(p.placed, p.find(ref)) })
	})
}

// add notes an object that a step applies.
func (p *script) add(e *engine.Options, object *unstructured.Unstructured) {
	if spec, found := object.Object["spec"]; found && spec == nil {
		object.Object["spec"] = map[string]any{} // kubebuilder writes samples with nothing but a comment there
	}
	namespaced, own := p.own[object.GroupVersionKind().GroupKind()]
	if object.GetNamespace() == "" && (namespaced || !own && !slices.Contains(clusterWide, object.GetKind())) {
		object.SetNamespace(p.namespace)
		p.placed = append(p.placed, object)
	}
	again := contains(p.applied, object)
	p.applied = append(p.applied, object)
	switch {
	case again: // as it was applied first: disturbances that create objects do so where that step does
	case own:
		e.Subjects = append(e.Subjects, object)
	default:
		e.Others = append(e.Others, object)
	}
}

// after returns those objects of the scenario that exist after a step.
func (p *script) after(step *scenario.Step, before []*unstructured.Unstructured) []*unstructured.Unstructured {
	switch {
	case step.Apply != nil:
		return append(slices.Clone(before), step.Apply.Objects...)
	case step.Delete != nil && step.Delete.All:
		return nil
	case step.Delete != nil:
		deleted := p.find(step.Delete.Ref)
		return slices.DeleteFunc(slices.Clone(before), func(one *unstructured.Unstructured) bool {
			return isSame(one, deleted) || isNamespaceOf(deleted, one)
		})
	}
	return before
}

// isEnd reports whether a step deletes the rest of what was applied.
func isEnd(step *scenario.Step, before, after []*unstructured.Unstructured) bool {
	return step.Delete != nil && len(after) == 0 && (step.Delete.All || len(before) > 0)
}

// isNamespaceOf reports whether an object is deleted together with a namespace.
func isNamespaceOf(namespace, object *unstructured.Unstructured) bool {
	return namespace.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"} && object.GetNamespace() == namespace.GetName()
}

// deletesOwn reports whether a custom resource that was there before a step is not there after it.
func (p *script) deletesOwn(before, after []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(p.ownIn(before), func(one *unstructured.Unstructured) bool { return !contains(after, one) })
}

// ownIn returns the custom resources among objects, each once.
func (p *script) ownIn(objects []*unstructured.Unstructured) (found []*unstructured.Unstructured) {
	for _, one := range objects {
		if _, own := p.own[one.GroupVersionKind().GroupKind()]; own && !contains(found, one) {
			found = append(found, one)
		}
	}
	return found
}

// contains reports whether one of some objects has the same kind and name as another one.
func contains(objects []*unstructured.Unstructured, other *unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(one *unstructured.Unstructured) bool { return isSame(one, other) })
}

// isSame reports whether two objects have the same kind and name.
func isSame(a, b *unstructured.Unstructured) bool {
	return a.GroupVersionKind().GroupKind() == b.GroupVersionKind().GroupKind() && a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName()
}

// refsIn returns the names of the objects that a step changes.
func refsIn(step *scenario.Step) (refs []scenario.Ref) {
	for i := range step.Patch {
		refs = append(refs, step.Patch[i].Ref)
	}
	if step.Scale != nil {
		refs = append(refs, step.Scale.Ref)
	}
	if step.Delete != nil && !step.Delete.All {
		refs = append(refs, step.Delete.Ref)
	}
	return refs
}

// changesElsewhere reports whether a step changes objects that no step applies, such as a pod.
func (p *script) changesElsewhere(step *scenario.Step) bool {
	return slices.ContainsFunc(refsIn(step), func(ref scenario.Ref) bool {
		return !contains(p.applied, p.find(ref))
	})
}

// clusterWide are kinds of Kubernetes that samples may bring and that are in no namespace.
var clusterWide = []string{"Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "StorageClass", "PersistentVolume", "IngressClass", "CustomResourceDefinition"}

func (p *script) do(ctx context.Context, objects client.Client, step *scenario.Step) error {
	switch {
	case step.Apply != nil:
		for _, object := range step.Apply.Objects {
			if err := apply(ctx, objects, object); err != nil {
				return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	case step.Patch != nil:
		for i := range step.Patch {
			if err := p.patch(ctx, objects, &step.Patch[i]); err != nil {
				return fmt.Errorf("%s: %w", step.Patch[i].Ref, err)
			}
		}
	case step.Scale != nil:
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, step.Scale.Replicas)
		return objects.SubResource("scale").Patch(ctx, p.find(step.Scale.Ref), client.RawPatch(types.MergePatchType, patch))
	case step.Delete != nil:
		return p.delete(ctx, objects, step.Delete)
	case step.Wait != nil:
		return p.wait(ctx, objects, step.Wait)
	}
	return nil
}

// apply creates an object. One that another step has applied is applied again, with all its fields.
func apply(ctx context.Context, objects client.Client, object *unstructured.Unstructured) error {
	err := objects.Create(ctx, object.DeepCopy(), client.FieldOwner("opdock-prove"))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return objects.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("opdock-prove"), client.ForceOwnership)
}

// find returns the object that a step names.
func (p *script) find(ref scenario.Ref) *unstructured.Unstructured {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(ref.APIVersion)
	found.SetKind(ref.Kind)
	found.SetNamespace(ref.Namespace)
	found.SetName(ref.Name)
	for _, object := range p.applied {
		if object.GetKind() != ref.Kind || ref.Name != "" && object.GetName() != ref.Name || ref.Namespace != "" && object.GetNamespace() != ref.Namespace {
			continue
		}
		if ref.APIVersion == "" {
			found.SetAPIVersion(object.GetAPIVersion())
		}
		if ref.Namespace == "" {
			found.SetNamespace(object.GetNamespace())
		}
		break
	}
	if found.GetNamespace() == "" && ref.Namespace == "" && !slices.Contains(clusterWide, ref.Kind) {
		if namespaced, own := p.own[found.GroupVersionKind().GroupKind()]; !own || namespaced {
			found.SetNamespace(p.namespace)
		}
	}
	if found.GetAPIVersion() == "" {
		found.SetAPIVersion(builtIn[ref.Kind])
	}
	return found
}

// builtIn are the versions of kinds that steps may name without one.
var builtIn = map[string]string{
	"Pod": "v1", "Service": "v1", "ConfigMap": "v1", "Secret": "v1", "Namespace": "v1", "PersistentVolumeClaim": "v1", "ServiceAccount": "v1",
	"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1",
	"Ingress": "networking.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1", "HorizontalPodAutoscaler": "autoscaling/v2", "PodDisruptionBudget": "policy/v1",
}

func (p *script) patch(ctx context.Context, objects client.Client, patch *scenario.Patch) error {
	kind, data, err := patch.Data()
	if err != nil {
		return err
	}
	err = objects.Patch(ctx, p.find(patch.Ref), client.RawPatch(kind, data), client.FieldOwner("opdock-prove"))
	for _, fallback := range patch.Fallbacks {
		if !lens.IsRejected(err) {
			return err
		}
		other := scenario.Patch{Ref: patch.Ref, Merge: fallback}
		if kind, data, err = other.Data(); err != nil {
			return err
		}
		err = objects.Patch(ctx, p.find(patch.Ref), client.RawPatch(kind, data), client.FieldOwner("opdock-prove"))
	}
	return err
}

func (p *script) delete(ctx context.Context, objects client.Client, what *scenario.Delete) error {
	targets := []*unstructured.Unstructured{}
	if what.All {
		for _, object := range slices.Backward(p.applied) {
			targets = append(targets, object)
		}
	} else {
		targets = append(targets, p.find(what.Ref))
	}
	for _, one := range targets {
		if err := client.IgnoreNotFound(objects.Delete(ctx, one.DeepCopy(), client.PropagationPolicy("Background"))); err != nil {
			return fmt.Errorf("deleting %s %s: %w", one.GetKind(), one.GetName(), err)
		}
	}
	return nil
}

func (p *script) wait(ctx context.Context, objects client.Client, what *scenario.Wait) error {
	limit := what.Timeout
	if limit == 0 {
		limit = waitPatience
	}
	last := "it does not exist"
	err := wait.PollUntilContextTimeout(ctx, waitInterval, limit, true, func(ctx context.Context) (bool, error) {
		live := p.find(what.Ref)
		if err := objects.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		last = "it has no such condition"
		for _, one := range conditions {
			condition, _ := one.(map[string]any)
			if strings.EqualFold(fmt.Sprint(condition["type"]), what.Condition) {
				last = fmt.Sprintf("it is %v: %v", condition["status"], condition["message"])
				return strings.EqualFold(fmt.Sprint(condition["status"]), what.Status), nil
			}
		}
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s is not %s=%s after %s: %s", what.Ref, what.Condition, what.Status, limit, last)
	}
	return err
}
