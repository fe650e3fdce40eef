// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// budget bounds the bytes that are copied and not yet decoded.
type budget struct {
	most int64
	used atomic.Int64
}

func (b *budget) take(count int) bool {
	if b.used.Add(int64(count)) <= b.most {
		return true
	}
	b.used.Add(-int64(count))
	return false
}

func (b *budget) give(count int) { b.used.Add(-int64(count)) }

// capture is a copy of a body, as far as there is room for it.
type capture struct {
	budget *budget
	most   int

	mutex sync.Mutex
	data  []byte
	size  int64
	short string // why data is not all of it
	over  bool   // whether it was released. More of the body may arrive after the request has ended, and is ignored.
}

// Words for why something is not decoded.
const (
	tooLarge        = "the body is too large"
	behind          = "the lens was overloaded"
	unknownEncoding = "its encoding is not known"
	noObject        = "it contains no object"
)

func (c *capture) write(data []byte) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.over {
		return
	}
	c.size += int64(len(data))
	switch {
	case c.short != "" || len(data) == 0:
		return
	case len(c.data)+len(data) > c.most:
		c.short = tooLarge
	case !c.budget.take(len(data)):
		c.short = behind
	default:
		c.data = append(c.data, data...)
		return
	}
	c.budget.give(len(c.data))
	c.data = nil
}

// all returns the copy, the size of the body, and why there is no copy.
func (c *capture) all() (data []byte, size int64, short string) {
	if c == nil {
		return nil, 0, ""
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.data, c.size, c.short
}

// release gives back the room that the copy took.
func (c *capture) release() {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.budget.give(len(c.data))
	c.data, c.over = nil, true
}

// errHungUp is a client that has not read an answer to its end.
var errHungUp = errors.New("the client closed the connection")

// tapped is a body that is copied while it is read.
type tapped struct {
	io.ReadCloser

	see func(data []byte)
	// ended is called once, with io.EOF, how reading failed, or errHungUp.
	ended func(err error)
	once  sync.Once
}

func (t *tapped) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		t.see(p[:n])
	}
	if err != nil {
		t.end(err)
	}
	return n, err
}

func (t *tapped) Close() error {
	err := t.ReadCloser.Close()
	t.end(errHungUp)
	return err
}

func (t *tapped) end(err error) {
	if t.ended != nil {
		t.once.Do(func() { t.ended(err) })
	}
}
