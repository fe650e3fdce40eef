// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// catchUpTimeout is how long a read waits until the cache has the manager's own writes. It usually takes milliseconds.
const catchUpTimeout = 5 * time.Second

// mostLate limits the memory for reads that have timed out.
const mostLate = 1000

// catchingUp limits how long reads wait for the cache. controller-runtime takes a write for seen when an object with
// that resource version arrives. If a watch is interrupted, an object may be gone from the next list, so nothing with
// that version arrives, and every read of it would wait until the reconcile times out, again and again. After the
// timeout, a pass sees what the cache has, and so do later ones until the next write. Events correct what they have
// missed.
type catchingUp struct {
	client.Client
	timeout time.Duration

	mutex sync.Mutex
	// late holds the reads that have timed out since the last write.
	late map[reading]bool
}

// reading is what a read is about; the key is empty for lists.
type reading struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
}

func (c *catchingUp) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.read(ctx, c.reading(object, key), func(ctx context.Context, wait bool) error {
		if !wait {
			options = append(options[:len(options):len(options)], client.DisableReadYourWritesConsistency)
		}
		return c.Client.Get(ctx, key, object, options...)
	})
}

func (c *catchingUp) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.read(ctx, c.reading(list, client.ObjectKey{}), func(ctx context.Context, wait bool) error {
		if !wait {
			options = append(options[:len(options):len(options)], client.DisableReadYourWritesConsistency)
		}
		return c.Client.List(ctx, list, options...)
	})
}

func (c *catchingUp) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	defer c.wrote(object)
	return c.Client.Create(ctx, object, options...)
}

func (c *catchingUp) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	defer c.wrote(object)
	return c.Client.Update(ctx, object, options...)
}

func (c *catchingUp) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	defer c.wrote(object)
	return c.Client.Patch(ctx, object, patch, options...)
}

func (c *catchingUp) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	defer c.wrote(object)
	return c.Client.Delete(ctx, object, options...)
}

func (c *catchingUp) Status() client.SubResourceWriter { return &statusWriter{c.Client.Status(), c} }

// statusWriter notes writes of a status.
type statusWriter struct {
	client.SubResourceWriter
	client *catchingUp
}

func (w *statusWriter) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	defer w.client.wrote(object)
	return w.SubResourceWriter.Update(ctx, object, options...)
}

func (w *statusWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	defer w.client.wrote(object)
	return w.SubResourceWriter.Patch(ctx, object, patch, options...)
}

// read reads with waiting, and if that takes too long, or did so before, without.
func (c *catchingUp) read(ctx context.Context, what reading, do func(ctx context.Context, wait bool) error) error {
	c.mutex.Lock()
	late := c.late[what]
	c.mutex.Unlock()
	if late {
		return do(ctx, false)
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := do(limited, true)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		c.giveUp(what)
		return do(ctx, false)
	}
	return err
}

func (c *catchingUp) giveUp(what reading) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.late == nil || len(c.late) >= mostLate {
		c.late = map[reading]bool{}
	}
	c.late[what] = true
}

// wrote makes reads wait for this write.
func (c *catchingUp) wrote(object client.Object) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.late) == 0 {
		return
	}
	delete(c.late, c.reading(object, client.ObjectKeyFromObject(object)))
	delete(c.late, c.reading(object, client.ObjectKey{}))
}

func (c *catchingUp) reading(object runtime.Object, key client.ObjectKey) reading {
	// A kind that is not known is refused by the client itself.
	kind, _ := c.GroupVersionKindFor(object)
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return reading{kind, key}
}
