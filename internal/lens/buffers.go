// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import "sync"

// buffers are reused between bodies.
type buffers struct{}

var bufferPool = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Get implements httputil.BufferPool.
func (buffers) Get() []byte { return bufferPool.Get().(*[32 << 10]byte)[:] }

// Put implements httputil.BufferPool.
func (buffers) Put(b []byte) { bufferPool.Put((*[32 << 10]byte)(b)) }
