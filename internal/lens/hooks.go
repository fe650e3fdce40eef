// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/loopback"
	"github.com/opdock/opdock/why/diff"
)

// HookVariable is the environment variable with the address for the marks of an instrumented
// operator.
const HookVariable = "OPDOCK_LENS_HOOK"

const (
	// maxMark is the longest line that a hook may send.
	maxMark = 64 << 10
	// greeting is how long a connection may take to send its credential.
	greeting = 5 * time.Second
	// maxHooks is how many processes may be connected: an operator is one, and may have just been restarted.
	maxHooks = 8
)

// hooks receives the marks of an operator: one connection for each process. The first line is
// the credential, and the others are marks.
type hooks struct {
	listener net.Listener
	token    string
	emit     func(Event)
	places   chan struct{}

	mutex  sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
	served sync.WaitGroup
}

// mark is a message of a hook. One of its parts is set.
type mark struct {
	At        time.Time  `json:"at"`
	Reconcile *Reconcile `json:"reconcile,omitempty"`
	Read      *Read      `json:"read,omitempty"`
	Dropped   uint64     `json:"dropped,omitempty"`
}

// listenForHooks uses a separate credential: it is in the environment of the operator, which
// may be logged, and is valid only for marks.
func listenForHooks(ctx context.Context, emit func(Event)) (*hooks, error) {
	token, err := newToken()
	if err != nil {
		return nil, err
	}
	listener, err := loopback.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the lens: %w", err)
	}
	h := &hooks{listener: listener, token: token, emit: emit, places: make(chan struct{}, maxHooks), open: map[net.Conn]struct{}{}}
	h.served.Go(h.accept)
	return h, nil
}

// address returns the address and the credential.
func (h *hooks) address() string { return h.listener.Addr().String() + "/" + h.token }

func (h *hooks) accept() {
	for {
		h.places <- struct{}{}
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		if !h.keep(conn) {
			conn.Close()
			return
		}
		h.served.Go(func() {
			defer func() { <-h.places }()
			defer h.drop(conn)
			h.read(conn)
		})
	}
}

func (h *hooks) keep(conn net.Conn) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.closed {
		return false
	}
	h.open[conn] = struct{}{}
	return true
}

func (h *hooks) drop(conn net.Conn) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.open, conn)
	conn.Close()
}

func (h *hooks) read(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxMark)
	if conn.SetReadDeadline(time.Now().Add(greeting)) != nil || !lines.Scan() ||
		subtle.ConstantTimeCompare([]byte(strings.TrimSpace(lines.Text())), []byte(h.token)) != 1 || conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	for lines.Scan() {
		var m mark
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue // the next line begins a new one
		}
		switch {
		case m.Reconcile != nil:
			m.Reconcile.Error = diff.HideSecrets(m.Reconcile.Error)
			h.emit(Event{At: m.At, Reconcile: m.Reconcile})
		case m.Read != nil:
			h.emit(Event{At: m.At, Read: m.Read})
		case m.Dropped > 0:
			h.emit(Event{At: m.At, Lost: &Lost{Events: m.Dropped, Reason: "the operator marked more than could be sent"}})
		}
	}
}

func (h *hooks) close() error {
	h.mutex.Lock()
	h.closed = true
	for conn := range h.open {
		conn.Close()
	}
	h.mutex.Unlock()
	err := h.listener.Close()
	h.served.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
