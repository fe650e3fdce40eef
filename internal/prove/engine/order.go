// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/prove/world"
)

// operatorLate is the variant in which the operator is not running during a step.
const operatorLate = "operator-late"

// foreground is the variant in which the garbage collector deletes what custom resources own before they are gone, as after
// kubectl delete --cascade=foreground. An operator that does not look at the deletion timestamp makes it again.
const foreground = "foreground"

// deletesInForeground is a client that deletes custom resources after what they own.
type deletesInForeground struct {
	client.Client
	subjects []*unstructured.Unstructured
}

func (c deletesInForeground) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	name := nameOf(object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName())
	if slices.ContainsFunc(c.subjects, func(one *unstructured.Unstructured) bool { return nameOfObject(one) == name }) {
		options = append(options, client.PropagationPolicy(metav1.DeletePropagationForeground))
	}
	return c.Client.Delete(ctx, object, options...)
}

// orderPlans let things happen in another order, or at the same time.
func orderPlans(c *campaign) (plans []*Plan) {
	if c.servesWebhooks {
		c.unplanned = append(c.unplanned, report.NotTried{Family: "order", What: "runs", Reason: needsOperator, Count: len(c.o.Steps)})
	} else {
		plans = c.latePlans()
	}
	at := c.first()
	if at < 0 {
		return plans
	}
	if at+1 < len(c.o.Steps) {
		plans = append(plans,
			&Plan{Family: "order", Variant: "recreate", Step: at + 1, Says: "The custom resources are deleted and created again under the same names at once"},
			&Plan{Family: "order", Variant: "twins", Step: at + 1, rank: 1, Says: "Second custom resources with the same specs and other names come and go"},
			&Plan{Family: "order", Variant: longNames, Step: at + 1, rank: 2, Says: "Custom resources with the same specs and long names, which differ only at the end, come and go"})
		if len(c.namesakes(at)) > 0 {
			plans = append(plans, &Plan{
				Family: "order", Variant: "namesakes", Step: at + 1, rank: 1,
				Says: "Second custom resources with the same specs and names come and go in the namespace " + elsewhere,
			})
		}
	}
	if end := c.fullest(); slices.ContainsFunc(c.o.Subjects, func(one *unstructured.Unstructured) bool { return c.isDeletedIn(end, one) }) {
		plans = append(plans, &Plan{
			Family: "order", Variant: foreground, Step: end, rank: 1,
			Says: "The custom resources are deleted in the foreground: what they own goes first",
		})
	}
	if _, late := c.referredTo(at); len(late) > 0 {
		plans = append(plans, &Plan{Family: "order", Variant: "late", Step: at, Says: "The custom resources come before the objects that they refer to"})
	}
	return plans
}

// latePlans let each step happen while the operator is not running.
func (c *campaign) latePlans() (plans []*Plan) {
	for step := range c.o.Steps {
		plans = append(plans, &Plan{
			Family: "order", Variant: operatorLate, Step: step, rank: step,
			Says: fmt.Sprintf("The operator is not running during step %q, and is started after it", c.o.Steps[step].Name),
		})
	}
	return plans
}

// first returns the first step after which there is a custom resource; -1 if there is none.
func (c *campaign) first() int {
	return slices.IndexFunc(c.reference, func(s *stage) bool { return len(present(s.state, c.o.Subjects)) > 0 })
}

// present returns the objects that a state has. Those of later steps are not there yet.
func present(state world.State, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(one *unstructured.Unstructured) bool {
		_, live := find(state, one)
		return live == nil
	})
}

// referredTo returns the objects that a step creates besides the custom resources: those without which nothing else can be
// created, and those that custom resources may refer to.
func (c *campaign) referredTo(step int) (early, late []*unstructured.Unstructured) {
	before := &stage{state: c.before, unseen: c.unseenBefore}
	if step > 0 {
		before = c.reference[step-1]
	}
	for _, one := range c.o.Others {
		switch {
		case c.reference[step].find(one) == nil || before.find(one) != nil:
		case one.GetKind() == "Namespace" || one.GetKind() == "CustomResourceDefinition":
			early = append(early, one)
		default:
			late = append(late, one)
		}
	}
	return early, late
}

func reorder(r *run, p *Plan) (*disturbance, error) {
	c := r.campaign
	switch p.Variant {
	case operatorLate:
		if c.servesWebhooks {
			return nil, &unjudgedError{needsOperator}
		}
		return &disturbance{afterStep: true, counts: true, act: func(ctx context.Context) error { return r.do(ctx, p.Step) }, heal: r.startOperator}, nil
	case foreground:
		return r.deleteInForeground(p), nil
	case "recreate":
		subjects := present(c.reference[p.Step-1].state, c.o.Subjects)
		return &disturbance{act: func(ctx context.Context) error { return r.recreate(ctx, subjects) }}, nil
	case "twins":
		var twins []*unstructured.Unstructured
		for _, subject := range present(c.reference[p.Step-1].state, c.o.Subjects) {
			twin := subject.DeepCopy()
			twin.SetName(subject.GetName() + twinSuffix)
			twins = append(twins, twin)
		}
		return r.comeAndGo(twins), nil
	case longNames:
		return r.lengthen(p), nil
	case "namesakes":
		return r.comeAndGo(c.namesakes(p.Step - 1)), nil
	case "late":
		early, late := c.referredTo(p.Step)
		subjects := present(c.reference[p.Step].state, c.o.Subjects)
		return &disturbance{
			afterStep: true,
			act:       func(ctx context.Context) error { return r.createAll(ctx, slices.Concat(early, subjects)) },
			heal:      func(ctx context.Context) error { return r.createOwn(ctx, late) },
			nudge: func(ctx context.Context) error { // many look again after a minute or more
				timers := r.activity.timers()
				if len(timers) > 0 && len(c.lateControllers(timers)) == 0 && !isUnhealthy(subjects, &made{state: r.world.State()}) {
					return nil // these are as undisturbed, and nobody says that something is missing
				}
				return r.nudge(ctx)
			},
		}, nil
	}
	return nil, fmt.Errorf("there is no order %q", p.Variant)
}

// deleteInForeground deletes the custom resources of a step after what they own. A finalizer keeps them until all is quiet: what they own
// may also take long to go.
func (r *run) deleteInForeground(p *Plan) *disturbance {
	c := r.campaign
	var targets []*unstructured.Unstructured
	state := r.world.State()
	for _, subject := range c.o.Subjects {
		if _, live := find(state, subject); live != nil && c.isDeletedIn(p.Step, subject) {
			targets = append(targets, live)
		}
	}
	return &disturbance{
		afterStep: true, counts: true,
		act: func(ctx context.Context) error {
			if err := r.hold(ctx, targets...); err != nil {
				return err
			}
			return r.doWith(ctx, p.Step, deletesInForeground{r.objects, c.o.Subjects})
		},
		heal: func(ctx context.Context) error { return r.letGo(ctx, targets...) },
	}
}

// comeAndGo creates objects, and deletes them in the end.
func (r *run) comeAndGo(objects []*unstructured.Unstructured) *disturbance {
	return &disturbance{
		may: nothing, spares: true,
		act: func(ctx context.Context) error { return r.createAll(ctx, objects) },
		heal: func(ctx context.Context) error {
			for _, one := range slices.Backward(objects) {
				if err := client.IgnoreNotFound(r.objects.Delete(ctx, one.DeepCopy())); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// keepsAlike reports whether the operator leaves an object of another custom resource behind as it leaves one of those in the scenario,
// after everything is deleted. That is by design, or another finding.
func (c *campaign) keepsAlike(object string) bool {
	object = longSuffix.ReplaceAllLiteralString(strings.Replace(object, twinSuffix, "", 1), "")
	for i, s := range c.reference {
		if !c.o.Steps[i].Ends {
			continue
		}
		for kept := range s.shape.Objects {
			kind, name, _ := strings.Cut(kept, " ")
			if kept == object || kind+" "+elsewhere+"/"+name[strings.Index(name, "/")+1:] == object {
				return true
			}
		}
		if s.shape.Counts[object] > 0 { // such as volumes
			return true
		}
	}
	return false
}

// twinSuffix is what the names of second custom resources end with.
const twinSuffix = "-twin"

// elsewhere is a namespace that every cluster has, and that no scenario needs.
const elsewhere = metav1.NamespacePublic

// namesakes are the custom resources that exist after a step, and what they may refer to, in another namespace. There are none for
// kinds without namespaces, for those that name their namespace in the spec, and if that namespace has such an object.
func (c *campaign) namesakes(step int) (all []*unstructured.Unstructured) {
	state := c.reference[step].state
	subjects := slices.DeleteFunc(present(state, c.o.Subjects), func(one *unstructured.Unstructured) bool {
		_, live := find(state, one)
		return live.GetNamespace() == "" || mentions(live.Object["spec"], live.GetNamespace())
	})
	if len(subjects) == 0 {
		return nil
	}
	others := slices.DeleteFunc(present(state, c.o.Others), func(one *unstructured.Unstructured) bool {
		return one.GetKind() != "Secret" && one.GetKind() != "ConfigMap" && one.GetKind() != "ServiceAccount"
	})
	for _, one := range slices.Concat(others, subjects) {
		namesake := one.DeepCopy()
		namesake.SetNamespace(elsewhere)
		if _, taken := find(state, namesake); taken != nil || slices.ContainsFunc(all, func(other *unstructured.Unstructured) bool { return nameOfObject(other) == nameOfObject(namesake) }) {
			return nil
		}
		all = append(all, namesake)
	}
	return all
}

// mentions reports whether a text is one of those in a value.
func mentions(value any, text string) bool {
	switch v := value.(type) {
	case string:
		return v == text
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return mentions(one, text) })
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), func(one any) bool { return mentions(one, text) })
	}
	return false
}

// createOwn creates objects, unless the operator has created one of them itself in the meantime. Then it is not missing.
func (r *run) createOwn(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, one := range objects {
		err := r.objects.Create(ctx, one.DeepCopy(), client.FieldOwner(manager))
		switch {
		case apierrors.IsAlreadyExists(err):
			return &unjudgedError{"the operator creates " + nameOfObject(one) + " itself if it is missing"}
		case err != nil:
			return fmt.Errorf("creating %s %s: %w", one.GetKind(), one.GetName(), err)
		}
	}
	return nil
}
