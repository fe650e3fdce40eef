// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// behind is a client whose cache never has what was written.
type behind struct {
	client.Client
	fails error // of reads that do not wait
}

func (b *behind) wait(ctx context.Context, not bool) error {
	if not {
		return b.fails
	}
	<-ctx.Done()
	return fmt.Errorf("waiting for the cache: %w", ctx.Err())
}

func (b *behind) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, options ...client.GetOption) error {
	return b.wait(ctx, (&client.GetOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency)
}

func (b *behind) List(ctx context.Context, _ client.ObjectList, options ...client.ListOption) error {
	return b.wait(ctx, (&client.ListOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency)
}

func TestReadsDoNotWaitForever(t *testing.T) {
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		deadline time.Duration // of the caller
		fails    error
		want     error
		took     time.Duration
	}{
		"the cache does not catch up": {time.Minute, nil, nil, catchUpTimeout},
		"and cannot be read":          {time.Minute, refused, refused, catchUpTimeout},
		"the caller is less patient":  {time.Second, nil, context.DeadlineExceeded, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			c := &catchingUp{&behind{fails: test.fails}, catchUpTimeout}
			for verb, read := range map[string]func(context.Context) error{
				"get":  func(ctx context.Context) error { return c.Get(ctx, client.ObjectKey{}, &corev1.Pod{}) },
				"list": func(ctx context.Context) error { return c.List(ctx, &corev1.PodList{}) },
			} {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
					defer cancel()
					began := time.Now()
					if err := read(ctx); !errors.Is(err, test.want) {
						t.Errorf("%s: got %v, want %v", verb, err, test.want)
					}
					if took := time.Since(began); took != test.took {
						t.Errorf("%s: it took %s, want %s", verb, took, test.took)
					}
				})
			}
		})
	}
}
