// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hint adds to an error what the user can do about it.
package hint

// Error is a failure together with what the user can do about it.
type Error struct {
	Err   error
	Hints []string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *Error) Unwrap() error { return e.Err }

// With adds what the user can do next to an error.
func With(err error, hints ...string) error { return &Error{Err: err, Hints: hints} }
