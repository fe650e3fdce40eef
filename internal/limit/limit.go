// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limit limits the resources that all clients of a server can use together.
package limit

import (
	"net"
	"sync"
	"time"
)

// Listener accepts only so many connections at a time; more of them wait in the operating system. When all places are taken,
// the client that has not read what is sent to it for longest loses its own, if that is longer than it may be stuck.
func Listener(l net.Listener, most int, stuck time.Duration) net.Listener {
	return &listener{Listener: l, stuck: stuck, taken: make(chan struct{}, most), closed: make(chan struct{}), conns: map[*conn]struct{}{}}
}

type listener struct {
	net.Listener

	stuck  time.Duration
	taken  chan struct{}
	closed chan struct{}
	once   sync.Once

	mutex sync.Mutex
	conns map[*conn]struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	if !l.take() {
		return nil, net.ErrClosed
	}
	accepted, err := l.Listener.Accept()
	if err != nil {
		<-l.taken
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l}
	l.mutex.Lock()
	l.conns[c] = struct{}{}
	l.mutex.Unlock()
	return c, nil
}

// take waits for a place and returns false when there will be none.
func (l *listener) take() bool {
	look := time.NewTicker(max(l.stuck/4, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case l.taken <- struct{}{}:
			return true
		case <-l.closed:
			return false
		case <-look.C:
			if c := l.mostStuck(); c != nil {
				c.Close()
			}
		}
	}
}

// mostStuck is the connection that has been written to for longest, nil if none has been for too long.
func (l *listener) mostStuck() (found *conn) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	oldest := time.Now().Add(-l.stuck)
	for c := range l.conns {
		if !c.writing.IsZero() && c.writing.Before(oldest) {
			found, oldest = c, c.writing
		}
	}
	return found
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type conn struct {
	net.Conn

	listener *listener
	writing  time.Time // since when; the listener's mutex guards it
}

func (c *conn) Write(data []byte) (int, error) {
	c.note(time.Now())
	defer c.note(time.Time{})
	return c.Conn.Write(data)
}

func (c *conn) note(since time.Time) {
	c.listener.mutex.Lock()
	defer c.listener.mutex.Unlock()
	c.writing = since
}

func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// release frees the place, once.
func (c *conn) release() {
	c.listener.mutex.Lock()
	defer c.listener.mutex.Unlock()
	if _, there := c.listener.conns[c]; there {
		delete(c.listener.conns, c)
		<-c.listener.taken
	}
}
