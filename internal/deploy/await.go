// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/health"
)

// lookInterval is the time between two looks at something that is waited for.
const lookInterval = 50 * time.Millisecond

// AwaitEstablished waits until custom resources of the CRDs can be created, or the server rejects a CRD.
func (s *Server) AwaitEstablished(ctx context.Context, definitions []*unstructured.Unstructured) error {
	for _, definition := range definitions {
		last := "the server has not processed it yet"
		err := wait.PollUntilContextCancel(ctx, lookInterval, true, func(ctx context.Context) (bool, error) {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(definition.GroupVersionKind())
			if err := s.client.Get(ctx, client.ObjectKeyFromObject(definition), live); err != nil {
				return false, fmt.Errorf("reading %s: %w", title(definition), err)
			}
			established, reason, err := establishment(live)
			last = reason
			return established && s.serves(live), err
		})
		if ctx.Err() != nil {
			return fmt.Errorf("CRD %s is not established: %s: %w", definition.GetName(), last, context.Cause(ctx))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// establishment says whether a CRD is established, and if not why. The error is there if it will not be either.
func establishment(definition *unstructured.Unstructured) (established bool, reason string, err error) {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	reason = "the server has not processed it yet"
	for _, one := range conditions {
		condition, ok := one.(map[string]any)
		if !ok {
			continue
		}
		text := fmt.Sprintf("%v: %v", condition["reason"], condition["message"])
		switch {
		case condition["type"] == "NamesAccepted" && condition["status"] == "False":
			return false, text, &RefusedError{Definition: definition, Err: fmt.Errorf("its names were not accepted: %s", text)}
		case condition["type"] == "NonStructuralSchema" && condition["status"] == "True":
			reason = text
		case condition["type"] == "Established":
			established = condition["status"] == "True"
			if !established {
				reason = text
			}
		}
	}
	return established, reason, nil
}

// serves asks for the resources themselves: a CRD is Established a moment before they can be used.
func (s *Server) serves(definition *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	for _, version := range servedVersions(definition) {
		list, err := s.discovery.ServerResourcesForGroupVersion(group + "/" + version)
		if err != nil {
			return false
		}
		found := false
		for _, resource := range list.APIResources {
			found = found || resource.Name == plural
		}
		if !found {
			return false
		}
	}
	return true
}

func servedVersions(definition *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var names []string
	for _, one := range versions {
		if version, ok := one.(map[string]any); ok && version["served"] == true {
			names = append(names, fmt.Sprint(version["name"]))
		}
	}
	return names
}

// UnavailableError is returned when workloads do not become available in time.
type UnavailableError struct {
	// Reasons are one for each workload.
	Reasons []string
	Cause   error
}

func (e *UnavailableError) Error() string { return strings.Join(e.Reasons, "; ") }

func (e *UnavailableError) Unwrap() error { return e.Cause }

// AwaitAvailable waits until all Deployments, StatefulSets and DaemonSets among the objects have rolled out. Objects
// without a namespace are read from the given one.
func (s *Server) AwaitAvailable(ctx context.Context, objects []*unstructured.Unstructured, namespace string) error {
	var reasons []string
	err := wait.PollUntilContextCancel(ctx, lookInterval, true, func(ctx context.Context) (bool, error) {
		var current []string
		for _, object := range objects {
			why, err := s.unavailable(ctx, object, namespace)
			if err != nil {
				return false, err
			}
			if why != "" {
				current = append(current, fmt.Sprintf("%s is not available: %s", title(object), why))
			}
		}
		reasons = current
		return len(current) == 0, nil
	})
	if err != nil && ctx.Err() != nil {
		return &UnavailableError{Reasons: reasons, Cause: context.Cause(ctx)}
	}
	return err
}

// unavailable says what a workload is waiting for; nothing if it is available or no workload.
func (s *Server) unavailable(ctx context.Context, object *unstructured.Unstructured, namespace string) (string, error) {
	if stageOf(object) != stageWorkloads {
		return "", nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	key := client.ObjectKeyFromObject(object)
	if key.Namespace == "" {
		key.Namespace = namespace
	}
	if err := s.client.Get(ctx, key, live); err != nil {
		return "", fmt.Errorf("reading %s: %w", title(object), err)
	}
	switch object.GetKind() {
	case "Deployment":
		return s.deploymentUnavailable(ctx, live)
	case "StatefulSet":
		var set appsv1.StatefulSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &set); err != nil {
			return "", err
		}
		want := ptr.Deref(set.Spec.Replicas, 1)
		return progress(set.Generation, set.Status.ObservedGeneration, want, set.Status.UpdatedReplicas, set.Status.AvailableReplicas), nil
	case "DaemonSet":
		var set appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &set); err != nil {
			return "", err
		}
		want := set.Status.DesiredNumberScheduled
		return progress(set.Generation, set.Status.ObservedGeneration, want, set.Status.UpdatedNumberScheduled, set.Status.NumberAvailable), nil
	default:
		return "", nil
	}
}

func progress(generation, observed int64, want, updated, available int32) string {
	if observed < generation {
		return "the rollout has not started yet"
	}
	if updated >= want && available >= want {
		return ""
	}
	return fmt.Sprintf("%d of %d pods are updated, %d are available", updated, want, available)
}

func (s *Server) deploymentUnavailable(ctx context.Context, live *unstructured.Unstructured) (string, error) {
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &deployment); err != nil {
		return "", err
	}
	trouble, err := health.TroubleOfDeployment(ctx, s.client, &deployment)
	if err != nil {
		return "", err
	}
	return health.RolloutOf(&deployment, trouble).Message, nil
}

// Workloads are the objects that AwaitAvailable waits for.
func Workloads(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		return !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, object.GetKind())
	})
}
