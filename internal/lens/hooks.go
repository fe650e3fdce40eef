// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/loopback"
	"github.com/opdock/opdock/why/diff"
)

// HookVariable is the environment variable with the address for the marks of an instrumented
// operator.
const HookVariable = "OPDOCK_LENS_HOOK"

const (
	// maxMark is the longest line that a hook may send, and maxGreeting the longest first line.
	maxMark     = 64 << 10
	maxGreeting = 256
	// greeting is how long a connection may take to send its credential.
	greeting = 5 * time.Second
	// maxHooks is how many processes may be connected: an operator is one, and may have just been restarted.
	maxHooks = 8
	// maxGreetings is how many connections may be without a credential yet. If there are more, the oldest one is closed:
	// a hook sends its credential at once, and others must not keep it from doing that.
	maxGreetings = 64
)

// hooks receives the marks of an operator: one connection for each process. The first line is
// the credential, and the others are marks.
type hooks struct {
	listener net.Listener
	token    string
	emit     func(Event)
	places   chan struct{}
	quit     chan struct{}

	mutex sync.Mutex
	open  map[net.Conn]struct{}
	// unknown are the connections without a credential yet, oldest first.
	unknown []net.Conn
	closed  bool
	served  sync.WaitGroup
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
	h := &hooks{listener: listener, token: token, emit: emit, places: make(chan struct{}, maxHooks), quit: make(chan struct{}), open: map[net.Conn]struct{}{}}
	h.served.Go(h.accept)
	return h, nil
}

// address returns the address and the credential.
func (h *hooks) address() string { return h.listener.Addr().String() + "/" + h.token }

func (h *hooks) accept() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		if !h.keep(conn) {
			conn.Close()
			return
		}
		h.served.Go(func() {
			defer h.drop(conn)
			h.serve(conn)
		})
	}
}

func (h *hooks) keep(conn net.Conn) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.closed {
		return false
	}
	if len(h.unknown) == maxGreetings {
		h.unknown[0].Close()
		h.unknown = slices.Delete(h.unknown, 0, 1)
	}
	h.unknown = append(h.unknown, conn)
	h.open[conn] = struct{}{}
	return true
}

// know notes that a connection has sent its credential, or will not.
func (h *hooks) know(conn net.Conn) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.unknown = slices.DeleteFunc(h.unknown, func(one net.Conn) bool { return one == conn })
}

func (h *hooks) drop(conn net.Conn) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.open, conn)
	conn.Close()
}

func (h *hooks) serve(conn net.Conn) {
	lines := bufio.NewReader(conn)
	greeted := h.isGreeted(conn, lines)
	h.know(conn)
	if !greeted {
		return
	}
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
		h.read(lines)
	case <-h.quit:
	}
}

// isGreeted reports whether a connection begins with the credential.
func (h *hooks) isGreeted(conn net.Conn, lines *bufio.Reader) bool {
	if conn.SetReadDeadline(time.Now().Add(greeting)) != nil {
		return false
	}
	line, err := nextLine(lines, maxGreeting)
	return err == nil && subtle.ConstantTimeCompare(bytes.TrimSpace(line), []byte(h.token)) == 1 && conn.SetReadDeadline(time.Time{}) == nil
}

// errLong is a line that was skipped.
var errLong = errors.New("the line is too long")

// nextLine reads a line, which is valid until the next call. A line that is too long is skipped.
func nextLine(lines *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := lines.ReadSlice('\n')
		switch incomplete := errors.Is(err, bufio.ErrBufferFull); {
		case len(line)+len(part) > most:
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = lines.ReadSlice('\n')
			}
			return nil, cmp.Or(err, errLong)
		case !incomplete && line == nil:
			return part, err
		case !incomplete:
			return append(line, part...), err
		}
		line = append(line, part...)
	}
}

func (h *hooks) read(lines *bufio.Reader) {
	for {
		line, err := nextLine(lines, maxMark)
		if errors.Is(err, errLong) {
			h.emit(Event{Lost: &Lost{Events: 1, Reason: "the operator sent a mark that is too long"}})
			continue
		}
		if err != nil {
			return
		}
		var m mark
		if json.Unmarshal(line, &m) != nil {
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
	if !h.closed {
		h.closed = true
		close(h.quit)
	}
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
