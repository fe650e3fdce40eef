// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"fmt"
	"time"

	"github.com/opdock/opdock/internal/flow"
)

const (
	// naiveRest is how long a naive reconciler must be idle before a change counts as complete.
	naiveRest = 2 * time.Second
	// fleetRest is the same for the fleet. It is longer than the fleet delays events that change only numbers.
	fleetRest = flow.MinorInterval + naiveRest

	// restTimeout is the maximum time until a change is complete.
	restTimeout = 2 * time.Minute
	interval    = 20 * time.Millisecond
)

// await waits until missing returns an empty string.
func await(ctx context.Context, missing func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, restTimeout)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		what, err := missing(ctx)
		if err != nil || what == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}

// awaitRest waits until the number that happened returns has not changed for the time rest, and missing returns an
// empty string.
func awaitRest(ctx context.Context, rest time.Duration, happened func() uint64, missing func(context.Context) (string, error)) error {
	last, since := happened(), time.Now()
	return await(ctx, func(ctx context.Context) (string, error) {
		if now := happened(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) <= rest {
			return "the cluster does not become quiet", nil
		}
		what, err := missing(ctx)
		if what != "" {
			since = time.Now()
		}
		return what, err
	})
}
