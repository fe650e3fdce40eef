// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reasons why the server does not take a child.
const (
	// ReasonInvalid means that the server finds a child invalid, so something in the spec is wrong.
	ReasonInvalid = "Invalid"

	// ReasonForbidden means that the server does not allow a child, because of a quota or a policy for example.
	ReasonForbidden = "Forbidden"
)

// Refused is the outcome of a write that failed. If the API server rejects it, retrying the same write does not help. In most
// cases the spec must change. It can also be a quota, a permission or a policy, which the manager does not watch.
func Refused(err error) error {
	switch {
	case isTerminating(err):
		return err
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), isUnmergeable(err):
		return StalledRetrying(ReasonInvalid, err)
	case apierrors.IsForbidden(err):
		return StalledRetrying(ReasonForbidden, err)
	default:
		return err
	}
}

// isUnmergeable reports whether the server could not parse the applied configuration, such as a list with a duplicate
// key. The server reports this as an internal error.
func isUnmergeable(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed to create typed patch object")
}
