// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opdock/opdock/internal/prove/world"
)

// driftPlans change the operator's objects in the step with most objects.
func driftPlans(c *campaign) (plans []*Plan) {
	step := c.fullest()
	if step == 0 {
		return nil
	}
	add := func(variant, object, says string, rank int, path []string, value any) {
		plans = append(plans, &Plan{Family: "drift", Variant: variant, Step: step, Object: object, Path: path, Value: value, Says: says, rank: rank})
	}
	for _, child := range c.children(step - 1) {
		name := child.key.String()
		add("delete", name, name+" is deleted by another user", 0, nil, nil)
		if c.o.Steps[step].Ends {
			add("finalizer", name, "A finalizer of another user holds up the deletion of "+name, 1, nil, nil)
		}
		for i, edit := range edits(child.object) {
			add("edit", name, fmt.Sprintf("%s of %s is changed to %v by another user", strings.Join(edit.path, "."), name, edit.value), 1+i, edit.path, edit.value)
		}
		if len(child.object.GetOwnerReferences()) > 0 {
			add("orphan", name, "The owner references of "+name+" are removed by another user", 2, nil, nil)
		}
		if len(child.object.GetLabels()) > 0 {
			add("relabel", name, "The labels of "+name+" are removed by another user", 2, nil, nil)
		}
	}
	for _, subject := range c.o.Subjects {
		add("status", subject.GetKind()+" "+subject.GetNamespace()+"/"+subject.GetName(), "The status of "+subject.GetKind()+" "+subject.GetName()+" is wiped", 0, nil, nil)
	}
	return plans
}

// fullest returns the step before which most objects exist: the one that deletes everything, or the
// last.
func (c *campaign) fullest() int {
	for i := range c.o.Steps {
		if c.o.Steps[i].Ends {
			return i
		}
	}
	return len(c.o.Steps) - 1
}

// child is an object that the operator has made.
type child struct {
	key    world.Key
	object *unstructured.Unstructured
}

// children returns the objects that the operator wrote, without its custom resources.
func (c *campaign) children(step int) (children []child) {
	written := map[string]bool{}
	for _, s := range c.reference[:step+1] {
		for i := range s.writes {
			w := &s.writes[i]
			if w.Subresource == "" {
				written[w.Group+"/"+w.Resource+"/"+w.Namespace+"/"+w.Name] = true
			}
		}
	}
	for key, object := range c.reference[step].state {
		if _, was := c.before[key]; was || c.isSubject(key.String()) || !written[key.Group+"/"+key.Resource+"/"+key.Namespace+"/"+key.Name] {
			continue
		}
		children = append(children, child{key, object})
	}
	slices.SortFunc(children, func(a, b child) int { return cmp.Compare(a.key.String(), b.key.String()) })
	return children
}

// edit is another value for a field.
type edit struct {
	path  []string
	value any
}

// mostEdits is how many fields of an object are changed, one after the other.
const mostEdits = 4

// edits change fields that the operator has set itself.
func edits(object *unstructured.Unstructured) (found []edit) {
	own := fieldpath.NewSet()
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil || strings.HasPrefix(entry.Manager, "kube-") || entry.Manager == manager {
			continue
		}
		var set fieldpath.Set
		if set.FromJSON(entry.FieldsV1.GetRawReader()) == nil {
			own = own.Union(&set)
		}
	}
	own.Leaves().Iterate(func(path fieldpath.Path) {
		names, value := follow(object.Object, path)
		if len(names) == 0 || names[0] == "metadata" || names[0] == "status" || slices.Contains(fixed, names[len(names)-1]) || slices.Contains(names, "selector") || slices.Contains(names, "labels") {
			return
		}
		switch v := value.(type) {
		case int64:
			found = append(found, edit{names, v + 1})
		case string:
			if v != "" && names[0] != "type" && !enumerated.MatchString(v) {
				found = append(found, edit{names, v + "x"})
			}
		case bool:
			found = append(found, edit{names, !v})
		}
	})
	slices.SortStableFunc(found, func(a, b edit) int {
		return cmp.Or(cmp.Compare(len(a.path), len(b.path)), cmp.Compare(strings.Join(a.path, "."), strings.Join(b.path, ".")))
	})
	if len(found) > mostEdits {
		// The objects nearest to the root, and one deep in the tree.
		found = append(found[:mostEdits-1], found[len(found)-1])
	}
	return found
}

// enumerated are values like ClientIP, which are mostly one of a few that the API server takes.
var enumerated = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// fixed are fields that identify elements of lists, or that take only certain values.
var fixed = []string{"name", "protocol", "type", "kind", "apiVersion", "apiGroup", "containerPort", "imagePullPolicy", "restartPolicy", "dnsPolicy", "clusterIP", "policy", "pathType", "operator", "whenUnsatisfiable", "scope"}

// follow finds the value that a path of managed fields leads to, and the path with the indexes of lists.
func follow(value any, path fieldpath.Path) (names []string, found any) {
	for _, element := range path {
		switch v := value.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil, nil
			}
			names, value = append(names, *element.FieldName), v[*element.FieldName]
		case []any:
			index := indexOf(v, element)
			if index < 0 {
				return nil, nil
			}
			names, value = append(names, strconv.Itoa(index)), v[index]
		default:
			return nil, nil
		}
	}
	return names, value
}

func indexOf(list []any, element fieldpath.PathElement) int {
	if element.Key == nil {
		return -1
	}
	return slices.IndexFunc(list, func(one any) bool {
		fields, ok := one.(map[string]any)
		if !ok {
			return false
		}
		for _, key := range *element.Key {
			if fmt.Sprint(fields[key.Name]) != fmt.Sprint(key.Value.Unstructured()) {
				return false
			}
		}
		return true
	})
}

// drift carries out a change.
func drift(r *run, p *Plan) (*disturbance, error) {
	target := r.find(p.Object)
	if target == nil {
		return nil, &notThereError{p.Object}
	}
	change := func(how func(live *unstructured.Unstructured)) func(context.Context) error {
		return func(ctx context.Context) error { return r.change(ctx, target, how) }
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
	case "edit":
		d.act = change(func(live *unstructured.Unstructured) { set(live.Object, p.Path, p.Value) })
	case "orphan":
		d.act = change(func(live *unstructured.Unstructured) { live.SetOwnerReferences(nil) })
	case "relabel":
		d.act = change(func(live *unstructured.Unstructured) { live.SetLabels(nil) })
	case "status":
		d.act = func(ctx context.Context) error { return r.wipeStatus(ctx, target) }
	case "finalizer":
		const finalizer = "opdock.dev/held"
		d.afterStep = true
		d.act = func(ctx context.Context) error {
			err := r.change(ctx, target, func(live *unstructured.Unstructured) { live.SetFinalizers(append(live.GetFinalizers(), finalizer)) })
			if err != nil {
				return err
			}
			return r.do(ctx, p.Step)
		}
		d.heal = func(ctx context.Context) error {
			err := r.change(ctx, target, func(live *unstructured.Unstructured) {
				live.SetFinalizers(slices.DeleteFunc(live.GetFinalizers(), func(one string) bool { return one == finalizer }))
			})
			return client.IgnoreNotFound(err)
		}
	default:
		return nil, fmt.Errorf("there is no drift %q", p.Variant)
	}
	return d, nil
}

// notThereError is an object that a plan needs, and that a run does not have.
type notThereError struct{ object string }

func (e *notThereError) Error() string { return "there is no " + e.object }

// find returns an object by its name as plans have it.
func (r *run) find(name string) *unstructured.Unstructured {
	for key, object := range r.world.State() {
		if key.String() == name {
			return object
		}
	}
	return nil
}

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
