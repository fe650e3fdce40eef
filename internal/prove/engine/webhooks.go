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
	"time"

	"k8s.io/client-go/rest"
)

// The API server asks the webhooks of an operator before it takes a custom resource. While the operator is dead, nobody can write
// one, and those of an operator whose webhooks are not configured yet are stored without its defaults. Both say nothing about the
// operator.

// needsOperator is why a run without the operator is not tried.
const needsOperator = "the operator serves webhooks, so custom resources cannot be written correctly while it is not running"

// uncalled is what the API server says if it cannot call a webhook.
var uncalled = regexp.MustCompile(`failed calling webhook|conversion webhook for .* failed`)

// reviving repeats requests that failed because the operator, whose webhooks the API server calls, has ended. They had no effect.
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
		if !uncalled.Match(body) || request.Body != nil && request.GetBody == nil {
			return response, nil
		}
		revived, err := t.revive(request.Context())
		if err != nil {
			return nil, err
		}
		if !revived {
			return response, nil
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
