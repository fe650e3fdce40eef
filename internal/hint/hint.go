// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hint adds suggested next steps to errors.
package hint

// Error is an error with suggested next steps.
type Error struct {
	Err   error
	Hints []string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *Error) Unwrap() error { return e.Err }

// With adds suggested next steps to an error.
func With(err error, hints ...string) error { return &Error{Err: err, Hints: hints} }
