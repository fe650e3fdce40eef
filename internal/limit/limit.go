// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limit bounds what the clients of a server can take together.
package limit

import (
	"net"
	"sync"
)

// Listener accepts only so many connections at a time; more of them wait in the operating system.
func Listener(l net.Listener, most int) net.Listener {
	return &listener{Listener: l, taken: make(chan struct{}, most), closed: make(chan struct{})}
}

type listener struct {
	net.Listener

	taken  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.taken <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	accepted, err := l.Listener.Accept()
	if err != nil {
		<-l.taken
		return nil, err
	}
	return &conn{Conn: accepted, release: sync.OnceFunc(func() { <-l.taken })}, nil
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type conn struct {
	net.Conn

	release func()
}

func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
