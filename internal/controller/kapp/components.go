// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

// Reasons of a KAPP that is stalled because of a component.
const (
	// ReasonInvalidComponent means that the resource of a component is invalid.
	ReasonInvalidComponent = "InvalidComponent"

	// ReasonInvalidDependency means that dependsOn names no component, or forms a cycle.
	ReasonInvalidDependency = "InvalidDependency"

	// ReasonKindNotInstalled means that the server does not serve a component's kind.
	ReasonKindNotInstalled = "KindNotInstalled"

	// ReasonComponentStalled means that a component's own controller reports that it is stalled.
	ReasonComponentStalled = "ComponentStalled"

	// ReasonComponentSuspended means that a component is suspended, so its readiness is unknown.
	ReasonComponentSuspended = "ComponentSuspended"
)

// part is a component and how far it is.
type part struct {
	component *kappv1.Component
	resource  *resource // nil if there is a problem with it

	state      kappv1.ComponentState
	reason     string // why it is stalled, for machines
	message    string
	waitingFor []string
	// exists is whether the object exists with the last applied configuration.
	exists bool
	// failure is what went wrong and may well succeed next time.
	failure error
	// retry means that it is stalled by something that is not watched.
	retry bool
	// lookAgain is the delay until the next reconcile, regardless of events; 0 if none is needed.
	lookAgain time.Duration
}

func (p *part) stall(reason string, err error) {
	p.state, p.reason, p.message = kappv1.ComponentStalled, reason, err.Error()
}

// plan reads the components and determines their order. An invalid component does not stop the others.
func (r *Reconciler) plan(_ context.Context, s *scope) error {
	dependencies := graph{}
	byName := map[string]*part{}
	var names []string
	for i := range s.kapp.Spec.Components {
		component := &s.kapp.Spec.Components[i]
		if byName[component.Name] != nil {
			return flow.Stalled(ReasonInvalidComponent, fmt.Errorf("two components have the name %q", component.Name))
		}
		dependencies[component.Name] = dependsOn(component)
		byName[component.Name] = &part{component: component}
		names = append(names, component.Name)
	}
	claimed := map[string]*part{}
	for _, name := range dependencies.inOrder(names) {
		p := byName[name]
		s.parts = append(s.parts, p)
		resource, err := desired(s.kapp, p.component, r.kinds)
		if err != nil {
			p.stall(ReasonInvalidComponent, err)
			continue
		}
		p.resource = resource
		if err := dependencies.problem(name); err != nil {
			p.stall(ReasonInvalidDependency, err)
		}
		if other := claimed[resource.String()]; other != nil {
			err := fmt.Errorf("%s and %s both define %s", other.component.Name, name, resource)
			other.stall(ReasonInvalidComponent, err)
			p.stall(ReasonInvalidComponent, err)
		}
		claimed[resource.String()] = p
	}
	return nil
}

// applyComponents creates and changes the components whose turn has come.
func (r *Reconciler) applyComponents(ctx context.Context, s *scope) error {
	ready := map[string]bool{}
	for _, p := range s.parts {
		if p.state != "" {
			continue
		}
		if !p.resource.kind.installed.Load() {
			p.stall(ReasonKindNotInstalled, notInstalled(p.resource.kind))
			continue
		}
		for _, dependency := range dependsOn(p.component) {
			if !ready[dependency] {
				p.waitingFor = append(p.waitingFor, dependency)
			}
		}
		if len(p.waitingFor) > 0 {
			p.wait(ctx, s.pass)
		} else {
			p.apply(ctx, s.pass)
		}
		ready[p.component.Name] = p.state == kappv1.ComponentReady
	}
	return nil
}

// wait sets the state of a component that must not be created or get a new configuration now. What other writers have
// changed is corrected all the same.
func (p *part) wait(ctx context.Context, pass *flow.Pass) {
	object := p.resource.kind.new()
	upToDate, err := pass.Applied(ctx, object, p.resource.configuration)
	drifted := false
	if err == nil && !upToDate {
		drifted, err = pass.HasOnlyDrifted(object, p.resource.configuration)
	}
	switch {
	case err != nil:
		p.failed(err)
	case drifted:
		p.waitingFor = nil
		p.apply(ctx, pass)
	case upToDate:
		p.waitingFor = nil
		p.assess(object)
	case object.GetUID() == "":
		p.state, p.message = kappv1.ComponentWaiting, "created when these are ready: "+strings.Join(p.waitingFor, ", ")
	default:
		p.state, p.message = kappv1.ComponentProgressing, "updated when these are ready: "+strings.Join(p.waitingFor, ", ")
	}
}

func (p *part) apply(ctx context.Context, pass *flow.Pass) {
	object := p.resource.kind.new()
	p.applied(object, pass.Apply(ctx, object, p.resource.configuration))
}

// applied sets the state of a component from the outcome of its Apply.
func (p *part) applied(object client.Object, err error) {
	after, retrying := flow.ComesBack(err)
	p.lookAgain = after
	switch {
	case err == nil:
		p.assess(object)
	case flow.IsStalled(err):
		p.stall(flow.Reason(err), err)
		// A conflicting object is watched, if possible, and a truce has an end. What the server accepts cannot be watched: a
		// policy or the schema may change.
		p.retry = retrying || flow.Reason(err) != flow.ReasonResourceExists && flow.Reason(err) != flow.ReasonContested
	case flow.IsWaiting(err):
		p.state, p.message = kappv1.ComponentProgressing, err.Error()
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		// The kind existed before, and no watch reports when it is back.
		p.stall(ReasonKindNotInstalled, notInstalled(p.resource.kind))
		p.retry = true
	default:
		p.failed(err)
	}
}

func (p *part) failed(err error) {
	p.state, p.message, p.failure = kappv1.ComponentProgressing, err.Error(), err
}

// assess copies the state that the component's own controller reports.
func (p *part) assess(object client.Object) {
	p.exists = true
	conditions := p.resource.kind.conditions(object)
	current := func(conditionType string) *metav1.Condition {
		condition := meta.FindStatusCondition(conditions, conditionType)
		if condition == nil || condition.ObservedGeneration != object.GetGeneration() {
			return nil
		}
		return condition
	}
	stalled, ready := current(sharedv1.ConditionStalled), current(sharedv1.ConditionReady)
	switch {
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		p.stall(ReasonComponentStalled, errors.New(stalled.Message))
	case ready == nil:
		p.state, p.message = kappv1.ComponentProgressing, "its controller has not reconciled it yet"
	case ready.Status == metav1.ConditionTrue:
		p.state = kappv1.ComponentReady
	case ready.Reason == flow.ReasonSuspended:
		p.stall(ReasonComponentSuspended, errors.New("it is suspended"))
	default:
		p.state, p.message = kappv1.ComponentProgressing, ready.Message
	}
}

func notInstalled(kind *componentKind) error {
	return fmt.Errorf("the kind %s is not installed; its CRD is in config/crd and in the installer", kind.Kind)
}
