// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/crdspec"
	"github.com/opdock/opdock/internal/health"
)

// servedBackoff is the interval of checks whether a kind is served, which cannot be watched. Mostly one or two checks
// are enough.
var servedBackoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 8, Cap: time.Second}

// explainTimeout limits the requests after the wait has timed out or the user has canceled it.
const explainTimeout = 5 * time.Second

// AwaitEstablished waits until custom resources of the CRDs can be created, or the server rejects a CRD.
func (s *Server) AwaitEstablished(ctx context.Context, definitions []*unstructured.Unstructured) error {
	for _, definition := range definitions {
		last := "the server has not processed it yet"
		established, err := isEstablished(definition, &last)
		if err == nil && !established {
			err = s.follow(ctx, definition, func(live *unstructured.Unstructured) (bool, error) {
				if live == nil {
					return false, fmt.Errorf("%s was deleted while opdock waited for it", title(definition))
				}
				definition = live
				return isEstablished(live, &last)
			})
		}
		if err == nil {
			err = s.awaitServed(ctx, definition)
		}
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("CRD %s is not established: %s: %w", definition.GetName(), last, context.Cause(ctx))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isEstablished reports whether a CRD is currently established, and keeps the reason if not.
func isEstablished(definition *unstructured.Unstructured, last *string) (bool, error) {
	established, reason, err := establishment(definition)
	*last = reason
	return established, err
}

// establishment reports whether a CRD is established, and if not why. It returns an error if it will not become
// established.
func establishment(definition *unstructured.Unstructured) (established bool, reason string, err error) {
	reason = "the server has not processed it yet"
	for _, one := range conditionsOf(definition) {
		text := fmt.Sprintf("%s: %s", one.reason, one.message)
		switch {
		case one.kind == "NamesAccepted" && one.status == "False":
			return false, text, &RefusedError{Definition: definition, Err: fmt.Errorf("its names were not accepted: %s", text)}
		case one.kind == "NonStructuralSchema" && one.status == "True":
			reason = text
		case one.kind == "Established":
			established = one.status == "True"
			if !established {
				reason = text
			}
		}
	}
	return established, reason, nil
}

// awaitServed requests the resources themselves, because a CRD is Established a moment before they can be used.
func (s *Server) awaitServed(ctx context.Context, definition *unstructured.Unstructured) error {
	kind := crdspec.Of(definition)
	return servedBackoff.DelayFunc().Until(ctx, true, false, func(context.Context) (bool, error) { return kind.IsServed(s.discovery), nil })
}

// UnavailableError is returned if objects do not become ready in time, or cannot become ready any more.
type UnavailableError struct {
	// Reasons are one for each object.
	Reasons []string
	Cause   error
}

func (e *UnavailableError) Error() string { return strings.Join(e.Reasons, "; ") }

func (e *UnavailableError) Unwrap() error { return e.Cause }

// ErrFailed is the cause of an UnavailableError of objects that cannot become ready without a change.
var ErrFailed = errors.New("it does not become ready by itself")

// AwaitReady waits until all objects are current by the rules of kstatus: a Deployment has rolled out, for example. Objects
// without a namespace are read from the given one.
func (s *Server) AwaitReady(ctx context.Context, objects []*unstructured.Unstructured, namespace string) error {
	reasons := make([]string, len(objects)) // of the objects that are not ready
	problems := make([]error, len(objects))
	var watchers sync.WaitGroup
	for i, object := range objects {
		object = object.DeepCopy()
		if object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		watchers.Go(func() {
			var last state
			var live *unstructured.Unstructured
			err := s.follow(ctx, object, func(now *unstructured.Unstructured) (bool, error) {
				live, last = now, stateOf(now)
				return last.status == current || last.status == failed, nil
			})
			switch {
			case last.status == current:
			case ctx.Err() != nil:
				problems[i] = context.Cause(ctx)
			case err != nil:
				problems[i] = err
				return
			default:
				problems[i] = ErrFailed
			}
			if problems[i] != nil {
				reasons[i] = fmt.Sprintf("%s is not available: %s", title(objects[i]), s.explain(ctx, live, last))
			}
		})
	}
	watchers.Wait()
	var unready []string
	var cause error
	for i, reason := range reasons {
		switch {
		case reason != "":
			unready, cause = append(unready, reason), problems[i]
		case problems[i] != nil:
			return problems[i]
		}
	}
	if len(unready) > 0 {
		return &UnavailableError{Reasons: unready, Cause: cause}
	}
	return nil
}

// explain returns why an object is not ready. The pods of a Deployment give the best reason; they are read after the
// wait has timed out.
func (s *Server) explain(ctx context.Context, live *unstructured.Unstructured, known state) string {
	if live == nil || live.GetKind() != "Deployment" {
		return known.message
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTimeout)
	defer cancel()
	var deployment appsv1.Deployment
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return known.message
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &deployment); err != nil {
		return known.message
	}
	trouble, err := health.TroubleOfDeployment(ctx, s.client, &deployment)
	if err != nil || trouble == nil {
		return known.message
	}
	return trouble.Error()
}
