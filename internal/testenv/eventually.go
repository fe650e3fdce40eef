// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Patience is how long a test waits for what should take seconds, on a machine that has a lot else to do.
const Patience = 3 * time.Minute

// lookEvery is short beside what people notice, and long beside what a check costs.
const lookEvery = 20 * time.Millisecond

// Check reports whether what a test waits for has happened. The context ends when the test's patience does.
type Check interface {
	func() bool | func() error | func(context.Context) error
}

// Eventually waits until a check holds, and fails the test with its last error if that takes too long.
func Eventually[C Check](t testing.TB, what string, check C) {
	t.Helper()
	if err := await(t.Context(), Patience, asError(check)); err != nil {
		t.Fatalf("%s: not after %v: %v", what, Patience, err)
	}
}

// Await waits until nothing is missing, and fails the test with what was missing last if that takes too long.
func Await(t testing.TB, missing func() string) {
	t.Helper()
	if err := await(t.Context(), Patience, func(context.Context) error {
		if what := missing(); what != "" {
			return errors.New(what)
		}
		return nil
	}); err != nil {
		t.Fatalf("after %v: %v", Patience, err)
	}
}

func asError(check any) func(context.Context) error {
	switch check := check.(type) {
	case func() bool:
		return func(context.Context) error {
			if !check() {
				return errors.New("the condition does not hold")
			}
			return nil
		}
	case func() error:
		return func(context.Context) error { return check() }
	case func(context.Context) error:
		return check
	}
	panic("no other check is allowed")
}

// await returns the last error of the check when patience or the context ends.
func await(ctx context.Context, patience time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return err
		}
	}
}
