// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/world"
)

// driftPlans change the operator's objects before the step with most custom resources. Variants take turns, and in each of them
// kinds: an operator with many objects would otherwise see nothing but deletions in a short campaign.
func driftPlans(c *campaign) (plans []*Plan) {
	step, end := c.disturbedStep(), c.fullest()
	if step == 0 {
		return nil
	}
	turns := map[string]int{}
	add := func(variant, object, says string, path []string, value any) {
		at := step
		if variant == "finalizer" || variant == heldSubject {
			at = end // which deletes it
		}
		plans = append(plans, &Plan{
			Family: "drift", Variant: variant, Step: at, Object: object, Path: path, Value: value, Says: says, rank: firstDrift[variant] + turns[variant],
		})
		turns[variant]++
	}
	children := slices.DeleteFunc(kindsInTurn(c.children(step-1)), func(one child) bool { return one.isFinished() }) // an operator that does not run it again is right
	for _, child := range children {
		name := child.key.String()
		if child.made {
			add("delete", name, name+" is deleted by another user", nil, nil)
		}
		_, there := c.reference[end-1].state[child.key]
		if _, stays := c.reference[end].state[child.key]; there && !stays && (c.o.Steps[end].Deletes || c.o.Steps[end].Ends) {
			add("finalizer", name, "A finalizer of another user holds up the deletion of "+name, nil, nil)
		}
		if child.made && len(child.object.GetOwnerReferences()) > 0 {
			add("orphan", name, "The owner references of "+name+" are removed by another user", nil, nil)
		}
		if child.made && len(child.object.GetLabels()) > 0 && c.mayRepair(child) && !isReplicaSet(child.key) {
			add("relabel", name, "The labels of "+name+" are removed by another user", nil, nil)
		}
		if child.made && canRestart(child.key) {
			add(rolloutRestart, name, "Another user restarts the pods of "+name+" with kubectl rollout restart", nil, nil)
		}
	}
	all := make([][]edit, len(children))
	for i, child := range children {
		if c.mayRepair(child) {
			all[i] = c.edits(child)
		}
	}
	for nth := range mostEdits {
		for i, child := range children {
			if nth >= len(all[i]) {
				continue
			}
			name, edit := child.key.String(), all[i][nth]
			value := shortened(strings.Join(strings.Fields(fmt.Sprint(edit.value)), " ")) // it may be a whole file
			says := fmt.Sprintf("%s of %s is changed to %s by another user", strings.Join(edit.path, "."), name, value)
			if child.key.Kind == "Secret" {
				says = fmt.Sprintf("%s of %s is changed by another user", strings.Join(edit.path, "."), name)
			}
			add("edit", name, says, edit.path, edit.value)
		}
	}
	for _, subject := range c.o.Subjects {
		add("status", nameOfObject(subject), "The status of "+subject.GetKind()+" "+subject.GetName()+" is wiped", nil, nil)
		if c.isDeletedIn(end, subject) {
			add(heldSubject, nameOfObject(subject), "A finalizer of another user holds up the deletion of "+nameOfObject(subject), nil, nil)
		}
	}
	return plans
}

// isDeletedIn reports whether a step deletes an object of the scenario, and undisturbed the deletion ends in it.
func (c *campaign) isDeletedIn(step int, object *unstructured.Unstructured) bool {
	if step == 0 || !c.o.Steps[step].Deletes && !c.o.Steps[step].Ends {
		return false
	}
	_, was := find(c.reference[step-1].state, object)
	_, is := find(c.reference[step].state, object)
	return was != nil && is == nil
}

// firstDrift is the rank of the first plan of each variant.
var firstDrift = map[string]int{"delete": 0, "edit": 0, "status": 0, "finalizer": 1, heldSubject: 1, rolloutRestart: 1, "orphan": 2, "relabel": 2}

// kindsInTurn sorts objects so that one of each kind comes before a second one of any.
func kindsInTurn(children []child) []child {
	turn, seen := map[world.Key]int{}, map[string]int{}
	for _, one := range children {
		turn[one.key] = seen[one.key.Group+"/"+one.key.Kind]
		seen[one.key.Group+"/"+one.key.Kind]++
	}
	slices.SortStableFunc(children, func(a, b child) int { return cmp.Compare(turn[a.key], turn[b.key]) })
	return children
}

// fullest returns the step before which most custom resources exist: one that deletes some, or the last. Of equal steps it is the
// later one, which more changes lead to.
func (c *campaign) fullest() int {
	fullest := len(c.o.Steps) - 1
	for i, s := range slices.Backward(c.o.Steps) {
		if (s.Deletes || s.Ends) && s.Subjects > c.o.Steps[fullest].Subjects {
			fullest = i
		}
	}
	return fullest
}

// disturbedStep returns the step before which custom resources and their children are disturbed: the fullest, or a step right
// before it that reverts a change. An operator that refuses to scale down, for example, would be in an error state after that.
func (c *campaign) disturbedStep() int {
	step := c.fullest()
	for step > 1 && c.bringsBack(step-1) {
		step--
	}
	return step
}

// bringsBack reports whether a step changes a custom resource back to what it was after an earlier one.
func (c *campaign) bringsBack(step int) bool {
	return slices.ContainsFunc(c.o.Subjects, func(subject *unstructured.Unstructured) bool {
		now, there := c.specAfter(step, subject)
		before, was := c.specAfter(step-1, subject)
		if !there || !was || reflect.DeepEqual(now, before) {
			return false
		}
		for earlier := range step - 1 {
			if once, was := c.specAfter(earlier, subject); was && reflect.DeepEqual(once, now) {
				return true
			}
		}
		return false
	})
}

// specAfter is the spec of a custom resource at the end of a step, and whether it is there.
func (c *campaign) specAfter(step int, subject *unstructured.Unstructured) (spec any, there bool) {
	_, live := find(c.reference[step].state, subject)
	if live == nil {
		return nil, false
	}
	return live.Object["spec"], true
}

// child is an object that the operator has written.
type child struct {
	key    world.Key
	object *unstructured.Unstructured
	// made means that the operator has made it: the rest of an object that it only changes is not the operator's to restore.
	made bool
}

// finishedPhases are those of a custom resource that has done its work.
var finishedPhases = []string{"succeeded", "successful", "complete", "completed", "finished"}

// isFinished reports whether an object has done its work: a Job, a pod, or a custom resource that says so in the same words.
func (c *child) isFinished() bool {
	switch {
	case c.key.Group == "batch" && c.key.Kind == "Job":
		return isOver(c.key, c.object) || conditionOf(c.object, "Failed") == "True"
	case c.key.Group == "" && c.key.Kind == "Pod":
		phase, _, _ := unstructured.NestedString(c.object.Object, "status", "phase")
		return phase == "Succeeded"
	case isBuiltIn(c.key.Group): // other kinds of Kubernetes do not finish
		return false
	}
	completed, _, _ := unstructured.NestedString(c.object.Object, "status", "completionTime")
	_, says := phaseOf(c.object)
	return completed != "" || slices.Contains(finishedPhases, strings.ToLower(says)) ||
		slices.ContainsFunc(finishedPhases, func(kind string) bool { return conditionOf(c.object, kind) == "True" })
}

// mayRepair reports whether an operator can be expected to restore an object. Most operators that run pods only create and delete them,
// as the controllers of Kubernetes do, and leave a pod alone that another user has changed.
func (c *campaign) mayRepair(one child) bool {
	if one.key.Group != "" || one.key.Resource != "pods" {
		return true
	}
	return slices.ContainsFunc(c.reference, func(s *stage) bool {
		return slices.ContainsFunc(s.writes, func(w write) bool {
			return w.Group == "" && w.Resource == "pods" && w.Subresource == "" && (w.Verb == "update" || w.Verb == "patch" || w.Verb == "apply")
		})
	})
}

// isReplicaSet is for what an operator may run instead of Deployments. As Kubernetes' own controller, it finds them by their labels, and
// does not restore their templates.
func isReplicaSet(key world.Key) bool { return key.Group == "apps" && key.Kind == "ReplicaSet" }

// children returns the objects that the operator wrote, without its custom resources.
func (c *campaign) children(step int) (children []child) {
	written, made := map[string]bool{}, map[string]bool{}
	for _, s := range c.reference[:step+1] {
		for i := range s.writes {
			w := &s.writes[i]
			if w.Subresource == "" {
				name := w.Group + "/" + w.Resource + "/" + w.Namespace + "/" + w.Name
				written[name] = true
				made[name] = made[name] || w.Verb == "create" || w.Verb == "apply"
			}
		}
	}
	for key, object := range c.reference[step].state {
		name := key.Group + "/" + key.Resource + "/" + key.Namespace + "/" + key.Name
		if _, was := c.before[key]; was || c.isSubject(key.String()) || !written[name] {
			continue
		}
		children = append(children, child{key, object, made[name] && !ofController(object) && !c.isOther(key, object)})
	}
	slices.SortFunc(children, func(a, b child) int { return cmp.Compare(a.key.String(), b.key.String()) })
	return children
}

// isOther reports whether the scenario brings an object, which is not a custom resource of the operator.
func (c *campaign) isOther(key world.Key, object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(c.o.Others, func(other *unstructured.Unstructured) bool {
		_, found := find(world.State{key: object}, other)
		return found != nil
	})
}

// drift carries out a change.
func drift(r *run, p *Plan) (*disturbance, error) {
	target := named(r.world.State(), p.Object)
	if target == nil {
		return nil, &notThereError{p.Object}
	}
	change := func(how func(live *unstructured.Unstructured)) func(context.Context) error {
		return func(ctx context.Context) error { return r.change(ctx, target, how) }
	}
	if p.Variant == rolloutRestart {
		return restartRollout(r, p, target), nil
	}
	d := &disturbance{}
	switch p.Variant {
	case "edit", "orphan", "relabel":
		d.may = onlyWith(target, r.world.State())
	case "status":
		d.may = nothing
	}
	switch p.Variant {
	case "delete":
		d.act = func(ctx context.Context) error {
			return r.objects.Delete(ctx, target.DeepCopy(), client.PropagationPolicy("Background"))
		}
		d.futile = func(ctx context.Context) (string, error) { return r.heldUp(ctx, target) }
	case "edit":
		d.act = change(func(live *unstructured.Unstructured) { set(live.Object, p.Path, p.Value) })
	case "orphan":
		d.act = change(func(live *unstructured.Unstructured) { live.SetOwnerReferences(nil) })
	case "relabel":
		d.act = change(func(live *unstructured.Unstructured) { live.SetLabels(nil) })
	case "status":
		d.act = func(ctx context.Context) error { return r.wipeStatus(ctx, target) }
	case "finalizer", heldSubject:
		d.afterStep = true
		if p.Variant == heldSubject {
			d.counts, d.broken = true, func(over rested) []*Observation { return r.failsWhileHeld(p, over) }
		}
		d.act = func(ctx context.Context) error {
			if err := r.hold(ctx, target); err != nil {
				return err
			}
			return r.do(ctx, p.Step)
		}
		d.heal = func(ctx context.Context) error { return r.letGo(ctx, target) }
	default:
		return nil, fmt.Errorf("there is no drift %q", p.Variant)
	}
	return d, nil
}

// hold adds a finalizer of another user to objects.
func (r *run) hold(ctx context.Context, targets ...*unstructured.Unstructured) error {
	for _, target := range targets {
		err := r.change(ctx, target, func(live *unstructured.Unstructured) { live.SetFinalizers(append(live.GetFinalizers(), holding)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// letGo removes it again, where the objects still exist.
func (r *run) letGo(ctx context.Context, targets ...*unstructured.Unstructured) error {
	for _, target := range targets {
		err := r.change(ctx, target, func(live *unstructured.Unstructured) {
			live.SetFinalizers(slices.DeleteFunc(live.GetFinalizers(), func(one string) bool { return one == holding }))
		})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// holding is the finalizer of another user.
const holding = "opdock.dev/held"

// heldSubject is the variant in which a finalizer of another user blocks the deletion of a custom resource. The operator must not
// recreate what it has deleted, and must not fail because it cannot add its own finalizer.
const heldSubject = "held"

// failsWhileHeld reports an operator that keeps failing to reconcile a custom resource while its deletion is blocked. Others may wait
// for the end of that deletion.
func (r *run) failsWhileHeld(p *Plan, over rested) []*Observation {
	c := r.campaign
	subject := named(r.world.State(), p.Object)
	if !over.stuck || subject == nil || over.failsAt[subject.GetNamespace()+"/"+subject.GetName()] == "" || c.reference[p.Step].rested.stuck || c.failsAsUndisturbed(over) || c.failsAsRestarted(over) {
		return nil
	}
	return []*Observation{{
		Step: p.Step, Verdict: "unsettled", Severity: medium, Object: p.Object, Title: "The operator keeps failing while a deletion is held up",
		Want: "nothing left to do until the finalizer of the other user is gone", Got: failsEachTime(over),
	}}
}

// protections are finalizers of Kubernetes itself, which hold up the deletion of an object that is in use. No operator can take such a
// deletion back, or end it.
var protections = []string{"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "service.kubernetes.io/load-balancer-cleanup", "batch.kubernetes.io/job-tracking"}

// protection returns the first of these finalizers that an object has; empty if it has none.
func protection(object *unstructured.Unstructured) string {
	for _, one := range object.GetFinalizers() {
		if slices.Contains(protections, one) {
			return one
		}
	}
	return ""
}

// heldUp says that Kubernetes holds up the deletion of an object; empty if it does not.
func (r *run) heldUp(ctx context.Context, target *unstructured.Unstructured) (string, error) {
	if protection(target) == "" {
		return "", nil
	}
	live, err := r.live(ctx, target)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if by := protection(live); by != "" && live.GetUID() == target.GetUID() && live.GetDeletionTimestamp() != nil {
		return nameOf(live.GetKind(), live.GetNamespace(), live.GetName()) + " is in use, and Kubernetes holds up its deletion with the finalizer " + by, nil
	}
	return "", nil
}

// notThereError is an object that a plan needs, and that a run does not have.
type notThereError struct{ object string }

func (e *notThereError) Error() string { return "there is no " + e.object }

// wipeStatus empties a status, as a restore from a backup does.
func (r *run) wipeStatus(ctx context.Context, target *unstructured.Unstructured) error {
	live, err := r.live(ctx, target)
	if err != nil {
		return err
	}
	live.Object["status"] = map[string]any{}
	err = r.objects.Status().Update(ctx, live, client.FieldOwner(manager))
	if apierrors.IsNotFound(err) {
		return &notThereError{"status of " + target.GetKind()}
	}
	return err
}

// set sets a field; elements of lists are named by their index.
func set(value any, path []string, to any) {
	for i, name := range path {
		last := i == len(path)-1
		switch v := value.(type) {
		case map[string]any:
			if last {
				if to == nil {
					delete(v, name)
				} else {
					v[name] = to
				}
				return
			}
			if _, there := v[name]; !there {
				v[name] = map[string]any{}
			}
			value = v[name]
		case []any:
			var index int
			if _, err := fmt.Sscan(name, &index); err != nil || index < 0 || index >= len(v) {
				return
			}
			if last {
				v[index] = to
				return
			}
			value = v[index]
		default:
			return
		}
	}
}
