// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/prove/scenario"
)

// Step is a part of a scenario in code. [Apply], [Patch], [Scale], [Delete], [DeleteAll] and [Wait] make steps.
type Step struct {
	step scenario.Step
	err  error
}

// Ignore says which findings do not matter, and why. Fields that are empty match everything. The reason is required, and so is at
// least one other field.
type Ignore = scenario.Ignore

// Settle says when a step is over. What is 0 has its default.
type Settle = scenario.Settle

// Apply brings objects to the cluster. Those without a namespace are in the namespace default, or in one that the operator watches
// if that is not one of them. Objects of a Go type need their apiVersion and kind, unless the type is in the scheme of client-go.
func Apply(name string, objects ...client.Object) Step {
	apply := &scenario.Apply{}
	var failed []error
	for _, one := range objects {
		object, err := plain(one)
		apply.Objects, failed = append(apply.Objects, object), append(failed, err)
	}
	if len(objects) == 0 {
		failed = append(failed, errors.New("there is no object to apply"))
	}
	return Step{scenario.Step{Name: name, Apply: apply}, errors.Join(failed...)}
}

// Patch changes an object by a JSON merge patch, which may be written as YAML.
func Patch(name string, object client.Object, merge string) Step {
	ref, err := refTo(object)
	patch := scenario.Patch{Ref: ref}
	if failed := yaml.Unmarshal([]byte(merge), &patch.Merge); failed != nil || patch.Merge == nil {
		err = errors.Join(err, fmt.Errorf("%q is no merge patch", merge))
	}
	return Step{scenario.Step{Name: name, Patch: []scenario.Patch{patch}}, err}
}

// Scale sets the replicas of an object through its scale subresource.
func Scale(name string, object client.Object, replicas int32) Step {
	ref, err := refTo(object)
	return Step{scenario.Step{Name: name, Scale: &scenario.Scale{Ref: ref, Replicas: replicas}}, err}
}

// Delete deletes an object.
func Delete(name string, object client.Object) Step {
	ref, err := refTo(object)
	return Step{scenario.Step{Name: name, Delete: &scenario.Delete{Ref: ref}}, err}
}

// DeleteAll deletes everything that steps before it applied.
func DeleteAll(name string) Step {
	return Step{step: scenario.Step{Name: name, Delete: &scenario.Delete{All: true}}}
}

// Wait waits until a condition of an object has a status, such as Ready=True.
func Wait(name string, object client.Object, condition string) Step {
	ref, err := refTo(object)
	wait := &scenario.Wait{Ref: ref}
	var found bool
	if wait.Condition, wait.Status, found = strings.Cut(condition, "="); !found || wait.Condition == "" || wait.Status == "" {
		err = errors.Join(err, fmt.Errorf("%q is no condition with a status, such as Ready=True", condition))
	}
	return Step{scenario.Step{Name: name, Wait: wait}, err}
}

// plain is an object as a file would have it.
func plain(of client.Object) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(of, scheme.Scheme)
	if own := of.GetObjectKind().GroupVersionKind(); !own.Empty() { // the scheme knows only types of Kubernetes
		kind, err = own, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%T %s has no apiVersion and kind: set its TypeMeta", of, of.GetName())
	}
	if of.GetName() == "" {
		return nil, fmt.Errorf("a %s has no name", kind.Kind)
	}
	var content any = of
	if given, ok := of.(*unstructured.Unstructured); ok {
		content = given.Object
	}
	encoded, err := json.Marshal(content)
	object := &unstructured.Unstructured{}
	if err == nil {
		err = json.Unmarshal(encoded, &object.Object) // whole numbers become what they are in objects, whatever type they had
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, of.GetName(), err)
	}
	object.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp") // which types of Go always have, like a status
	delete(object.Object, "status")
	return object, nil
}

func refTo(of client.Object) (scenario.Ref, error) {
	object, err := plain(of)
	if err != nil {
		return scenario.Ref{}, err
	}
	return scenario.Ref{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}, nil
}

// inCode returns the scenario that options hold, with mistakes that a file could not have without a line being named for them.
func (o *Options) inCode() (*scenario.Scenario, error) {
	s := &scenario.Scenario{}
	var failed []error
	names, applied := map[string]bool{}, false
	for i := range o.Steps {
		step := &o.Steps[i]
		name := cmp.Or(step.step.Name, strconv.Itoa(i+1))
		switch {
		case step.err != nil:
			failed = append(failed, fmt.Errorf("step %q: %w", name, step.err))
		case step.step.Name == "":
			failed = append(failed, fmt.Errorf("step %s has no name", name))
		case names[name]:
			failed = append(failed, fmt.Errorf("two steps have the name %q", name))
		case step.step.Delete != nil && step.step.Delete.All && !applied:
			failed = append(failed, fmt.Errorf("step %q deletes what steps before it applied, but there is none", name))
		}
		names[name], applied = true, applied || step.step.Apply != nil
		s.Steps = append(s.Steps, copied(step.step))
	}
	return s, errors.Join(failed...)
}

// copied copies the objects of a step, because a campaign completes them, and the caller may use the step again.
func copied(step scenario.Step) scenario.Step {
	if step.Apply != nil {
		objects := make([]*unstructured.Unstructured, 0, len(step.Apply.Objects))
		for _, object := range step.Apply.Objects {
			objects = append(objects, object.DeepCopy())
		}
		step.Apply = &scenario.Apply{Objects: objects}
	}
	return step
}
