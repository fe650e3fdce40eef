// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// The API server calls the webhooks of an operator before it stores a custom resource. While the operator is not running, the API
// server rejects such writes. Before its webhooks are configured, custom resources are stored without defaults. Neither is a defect of
// the operator.

// needsOperator is why a run without the operator is not tried.
const needsOperator = "the operator serves webhooks, so custom resources cannot be written correctly while it is not running"

// What the API server says if it cannot call a webhook: before it stores an object, or to convert one that has a group and version.
var (
	uncalled    = regexp.MustCompile(`failed calling webhook`)
	unconverted = regexp.MustCompile(`conversion webhook for ([^,"]*), Kind=.* failed`)
)

// mayBeDone is why a run is not judged in which a request may have been carried out twice.
const mayBeDone = "the operator ended while it converted a custom resource, so it is not known whether the resource was written"

// reviving repeats requests that failed because the operator, whose webhooks the API server calls, has ended, if they had no effect or
// may have it twice.
type reviving struct {
	next http.RoundTripper
	// revive starts an operator again that has ended, and reports whether it had.
	revive func(ctx context.Context) (bool, error)
}

// RoundTrip sends a request until it does not fail for that reason.
func (t *reviving) RoundTrip(request *http.Request) (*http.Response, error) {
	for {
		response, err := t.next.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusInternalServerError {
			return response, err
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		converted := unconverted.FindSubmatch(body)
		if converted == nil && !uncalled.Match(body) || request.Body != nil && request.GetBody == nil {
			return response, nil
		}
		revived, err := t.revive(request.Context())
		if err != nil {
			return nil, err
		}
		if !revived {
			return response, nil
		}
		if converted != nil && !mayRepeat(request, string(converted[1])) {
			return nil, &unjudgedError{mayBeDone}
		}
		again := request.Clone(request.Context())
		if request.GetBody != nil {
			if again.Body, err = request.GetBody(); err != nil {
				return nil, err
			}
		}
		request = again
	}
}

// mayRepeat reports whether a request may be sent again after an object of a group and version could not be converted. What is stored is
// converted for the answer, so the request may have had its effect already. Only an object in the version of the request itself is
// always converted before it is stored.
func mayRepeat(request *http.Request, version string) bool {
	if strings.HasPrefix(request.URL.Path, "/apis/"+version+"/") {
		return true
	}
	switch request.Method {
	case http.MethodGet, http.MethodPut, http.MethodDelete: // for those who delete custom resources, one that is gone is no error
		return true
	case http.MethodPatch:
		kind := request.Header.Get("Content-Type")
		return kind == string(types.MergePatchType) || strings.HasPrefix(kind, "application/apply-patch+")
	}
	return false
}

// withOperator returns a configuration for writes that may need the operator's webhooks.
func (r *run) withOperator(admin *rest.Config) *rest.Config {
	config := rest.CopyConfig(admin)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &reviving{next, r.reviveIfEnded} })
	return config
}

// dying is how long it takes at most until the end of an operator is known that does not answer any more.
const dying = time.Second

// reviveIfEnded restarts the operator if it has ended, and reports whether it had. What a restart itself writes waits for nothing.
func (r *run) reviveIfEnded(ctx context.Context) (bool, error) {
	if !r.reviving.CompareAndSwap(false, true) {
		return false, nil
	}
	defer r.reviving.Store(false)
	done, _ := r.ended()
	if done == nil {
		return false, nil
	}
	late := time.NewTimer(dying)
	defer late.Stop()
	select {
	case <-done:
		return true, r.revive(ctx)
	case <-late.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
