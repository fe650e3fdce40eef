// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/lens"
)

const (
	// goneInterval is how often it is looked whether an object is gone.
	goneInterval = 100 * time.Millisecond
	// admitInterval is how often a write is retried that a webhook denies or whose kind is missing, and admitPatience how
	// long for all samples: the webhook may depend on what the operator does with the other samples, and so may the kind.
	admitInterval = 250 * time.Millisecond
	admitPatience = 5 * time.Second
)

// changedAnnotation is set on each sample that is changed.
const changedAnnotation = "opdock.dev/rehearsed"

// Samples are the acts with the samples of an operator: create, change, delete. Each is done with a client that may do
// anything. Samples that name no namespace go to the given one, if their kind is in namespaces, and missing namespaces are created. A sample that the API server
// refuses is left out with a note, and so is one that is there already: folders of samples have alternatives under one name. A
// webhook that cannot be called ends the rehearsal. Samples are deleted in the reverse order: later ones may depend on earlier
// ones. Those that could be created only after others are gone before the others are deleted. The function that Samples returns as well is for Options.Subjects.
func Samples(objects client.Client, samples []*unstructured.Unstructured, namespace func() string, note func(string)) ([]Act, func() []Subject) {
	placed := make([]*unstructured.Unstructured, 0, len(samples))
	for _, sample := range samples {
		sample = sample.DeepCopy()
		if spec, found := sample.Object["spec"]; found && spec == nil {
			sample.Object["spec"] = map[string]any{} // kubebuilder writes samples with nothing but a comment there
		}
		placed = append(placed, sample)
	}
	// Namespaces come first: otherwise, they are created without the labels of their samples.
	isOther := func(sample *unstructured.Unstructured) int {
		if sample.GetKind() == "Namespace" && sample.GetAPIVersion() == "v1" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(placed, func(a, b *unstructured.Unstructured) int { return isOther(a) - isOther(b) })
	each := func(do func(context.Context, *unstructured.Unstructured) error) func(context.Context) error {
		return func(ctx context.Context) error {
			var failed []error
			for _, sample := range placed {
				if err := do(ctx, sample); err != nil {
					failed = append(failed, fmt.Errorf("%s %s: %w", sample.GetKind(), sample.GetName(), err))
				}
			}
			return errors.Join(failed...)
		}
	}
	var subjects []Subject
	early := 0 // how many samples depend on none of the others
	acts := []Act{
		{"create the samples", func(ctx context.Context) error {
			created, leftOut, refused, err := createAll(ctx, objects, placed, namespace(), func(created int) { early = created })
			if err != nil {
				return err
			}
			if len(created) == 0 {
				return errors.Join(refused...)
			}
			said := map[string]bool{}
			for _, err := range refused {
				if text := "a sample is left out: " + err.Error(); !said[text] {
					said[text] = true
					note(text)
				}
			}
			placed = created
			subjects, err = subjectsOf(objects, created, leftOut)
			return err
		}},
		{"change the samples", each(func(ctx context.Context, sample *unstructured.Unstructured) error {
			return change(ctx, objects, sample, note)
		})},
		{"delete the samples", func(ctx context.Context) error {
			for i, sample := range slices.Backward(placed) {
				if i == early-1 {
					// The operator may need the others to clean up after these.
					if err := gone(ctx, objects, placed[early:]); err != nil {
						return err
					}
				}
				err := admitted(ctx, func() error { return client.IgnoreNotFound(objects.Delete(ctx, sample.DeepCopy())) })
				if err != nil {
					return fmt.Errorf("%s %s: %w", sample.GetKind(), sample.GetName(), err)
				}
			}
			return nil
		}},
		{"wait until they are gone", func(ctx context.Context) error { return gone(ctx, objects, placed) }},
	}
	return acts, func() []Subject { return subjects }
}

// createAll creates samples. It returns which were created, which were refused, and why. It retries what a webhook
// denies for a while, and kinds that the cluster does not have: the operator may create their CRDs for other samples.
// It reports how many were created at the first attempt.
func createAll(ctx context.Context, objects client.Client, samples []*unstructured.Unstructured, namespace string, first func(created int)) (created, leftOut []*unstructured.Unstructured, refused []error, err error) {
	until := time.Now().Add(admitPatience)
	for left := samples; ; {
		var denied []*unstructured.Unstructured
		var denials []error
		for _, sample := range left {
			err := create(ctx, objects, sample, namespace)
			if ctx.Err() != nil {
				return nil, nil, nil, err
			}
			if err == nil {
				created = append(created, sample)
				continue
			}
			err = fmt.Errorf("%s %s: %w", sample.GetKind(), sample.GetName(), err)
			switch {
			case apierrors.IsInternalError(err):
				return nil, nil, nil, err // such as a webhook that cannot be called: the sample is not to blame
			case isDenied(err), meta.IsNoMatchError(err):
				denied, denials = append(denied, sample), append(denials, err)
			default:
				leftOut, refused = append(leftOut, sample), append(refused, err)
			}
		}
		if len(left) == len(samples) {
			first(len(created))
		}
		if len(denied) == 0 || len(created) == 0 && !slices.ContainsFunc(denials, isDenied) || time.Now().After(until) {
			return created, append(leftOut, denied...), append(refused, denials...), nil
		}
		left = denied
		select {
		case <-ctx.Done():
		case <-time.After(admitInterval):
		}
	}
}

// isDenied reports whether a webhook or an admission policy denied a write. They choose the status code, so only the
// message of the API server shows it.
func isDenied(err error) bool {
	return err != nil && lens.IsDenial(err.Error())
}

// admitted tries a write again while a webhook denies it, until the context ends. It returns the last denial then.
func admitted(ctx context.Context, write func() error) (err error) {
	var denied error
	_ = wait.PollUntilContextCancel(ctx, admitInterval, true, func(context.Context) (bool, error) {
		err = write()
		if isDenied(err) {
			denied = err
		}
		return !isDenied(err), nil
	})
	if ctx.Err() != nil && denied != nil {
		return denied
	}
	return err
}

// subjectsOf returns the samples that the operator is to reconcile: the custom resources, or all if there are none. Others, such as
// Secrets, are there for these to refer to.
func subjectsOf(objects client.Client, samples, leftOut []*unstructured.Unstructured) (subjects []Subject, err error) {
	isCustom := func(sample *unstructured.Unstructured) bool {
		return !scheme.Scheme.IsGroupRegistered(sample.GroupVersionKind().Group)
	}
	onlyCustom := slices.ContainsFunc(samples, isCustom) || slices.ContainsFunc(leftOut, isCustom)
	for _, sample := range samples {
		if onlyCustom && !isCustom(sample) {
			continue
		}
		kind := sample.GroupVersionKind()
		mapping, err := objects.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("looking for the resource of %s: %w", kind.Kind, err)
		}
		resource := lens.Resource{Group: kind.Group, Resource: mapping.Resource.Resource}
		subjects = append(subjects, Subject{Kind: Kind{kind.Group, kind.Kind}, Resource: named(resource, sample.GetNamespace(), sample.GetName())})
	}
	for _, sample := range leftOut {
		if kind := sample.GroupVersionKind(); !onlyCustom || isCustom(sample) {
			subjects = append(subjects, Subject{Kind: Kind{kind.Group, kind.Kind}, LeftOut: true})
		}
	}
	return subjects, nil
}

func create(ctx context.Context, objects client.Client, sample *unstructured.Unstructured, namespace string) error {
	inNamespace, err := objects.IsObjectNamespaced(sample)
	if err != nil {
		return err
	}
	if inNamespace && sample.GetNamespace() == "" {
		sample.SetNamespace(namespace)
	}
	err = objects.Create(ctx, sample.DeepCopy())
	if missing := apply.MissingNamespace(err); missing != "" && inNamespace {
		if err := apply.EnsureNamespace(ctx, objects, missing); err != nil {
			return err
		}
		err = objects.Create(ctx, sample.DeepCopy())
	}
	return err
}

// change changes an annotation and, if the API server accepts that, a number in the spec: many operators act only on the latter. A
// sample may be gone, because the operator was done with it, and a webhook may accept no change.
func change(ctx context.Context, objects client.Client, sample *unstructured.Unstructured, note func(string)) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(sample.GroupVersionKind())
	if err := objects.Get(ctx, client.ObjectKeyFromObject(sample), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	spec, _, _ := unstructured.NestedMap(live.Object, "spec")
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		number, ok := spec[field].(int64)
		if !ok {
			continue
		}
		changed := annotated(live)
		if err := unstructured.SetNestedField(changed.Object, number+1, "spec", field); err != nil {
			continue
		}
		err := objects.Patch(ctx, changed, client.MergeFrom(live))
		if !lens.IsRejected(err) {
			return client.IgnoreNotFound(err)
		}
	}
	err := client.IgnoreNotFound(objects.Patch(ctx, annotated(live), client.MergeFrom(live)))
	if lens.IsRejected(err) {
		note(fmt.Sprintf("%s %s could not be changed: %v", sample.GetKind(), sample.GetName(), err))
		return nil
	}
	return err
}

func annotated(live *unstructured.Unstructured) *unstructured.Unstructured {
	changed := live.DeepCopy()
	annotations := changed.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[changedAnnotation] = "true"
	changed.SetAnnotations(annotations)
	return changed
}

// gone waits until objects do not exist any more, which may take a finalizer that the operator has to remove.
func gone(ctx context.Context, objects client.Client, samples []*unstructured.Unstructured) error {
	for _, sample := range samples {
		err := wait.PollUntilContextCancel(ctx, goneInterval, true, func(ctx context.Context) (bool, error) {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(sample.GroupVersionKind())
			err := objects.Get(ctx, client.ObjectKeyFromObject(sample), live)
			if meta.IsNoMatchError(err) {
				return true, nil // its CRD is gone
			}
			return apierrors.IsNotFound(err) || err == nil && isLeftToKubernetes(live), client.IgnoreNotFound(err)
		})
		if err != nil {
			return fmt.Errorf("%s %s still exists: %w", sample.GetKind(), sample.GetName(), err)
		}
	}
	return nil
}

// isLeftToKubernetes says whether an object waits for nothing but Kubernetes itself, as a volume does whose claim still exists.
func isLeftToKubernetes(object *unstructured.Unstructured) bool {
	return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) > 0 &&
		!slices.ContainsFunc(object.GetFinalizers(), func(name string) bool { return !strings.HasPrefix(name, "kubernetes.io/") })
}
