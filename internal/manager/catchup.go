// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// catchUpTimeout is how long a read waits until the cache has the manager's own writes. It usually takes milliseconds.
const catchUpTimeout = 5 * time.Second

// catchingUp limits how long reads wait for the cache. controller-runtime takes a write for seen when an object with
// that resource version arrives. If a watch is interrupted, an object may be gone from the next list, so nothing with
// that version arrives, and every read of the kind would wait until the reconcile times out, again and again. After
// the timeout, a pass sees what the cache has. Events correct what it has missed.
type catchingUp struct {
	client.Client
	timeout time.Duration
}

func (c *catchingUp) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.read(ctx, func(ctx context.Context, wait bool) error {
		if !wait {
			options = append(options[:len(options):len(options)], client.DisableReadYourWritesConsistency)
		}
		return c.Client.Get(ctx, key, object, options...)
	})
}

func (c *catchingUp) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.read(ctx, func(ctx context.Context, wait bool) error {
		if !wait {
			options = append(options[:len(options):len(options)], client.DisableReadYourWritesConsistency)
		}
		return c.Client.List(ctx, list, options...)
	})
}

// read reads with waiting, and if that takes too long, without.
func (c *catchingUp) read(ctx context.Context, do func(ctx context.Context, wait bool) error) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := do(limited, true)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return do(ctx, false)
	}
	return err
}
