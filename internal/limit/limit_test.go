// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// accept accepts connections until the listener is closed.
func accept(t *testing.T, most int, stuck time.Duration) (limited net.Listener, accepted chan net.Conn, ended chan error) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limited = Listener(inner, most, stuck)
	t.Cleanup(func() { limited.Close() })
	accepted, ended = make(chan net.Conn), make(chan error, 1)
	go func() {
		for {
			conn, err := limited.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	return limited, accepted, ended
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestListenerAcceptsOnlySoMany(t *testing.T) {
	limited, accepted, ended := accept(t, 1, time.Hour)
	dial(t, limited)
	dial(t, limited)
	first := <-accepted
	select {
	case <-accepted:
		t.Error("the second is accepted beside the first")
	default:
	}
	// Closing it twice frees one place only.
	first.Close()
	first.Close()
	second := <-accepted
	defer second.Close()
	limited.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("once it is closed, accepting ends with %v", err)
	}
}

// A client that does not read makes room for one that waits; one that is only quiet does not.
func TestListenerDropsSlowReaders(t *testing.T) {
	limited, accepted, _ := accept(t, 2, 10*time.Millisecond)
	quiet := dial(t, limited)
	quietSide := <-accepted
	dial(t, limited)
	stuckSide := <-accepted
	written := make(chan error, 1)
	go func() {
		for {
			if _, err := stuckSide.Write(make([]byte, 1<<20)); err != nil {
				written <- err
				return
			}
		}
	}()
	dial(t, limited)
	third := <-accepted
	defer third.Close()
	if err := <-written; !errors.Is(err, net.ErrClosed) {
		t.Errorf("writing to who does not read ends with %v", err)
	}
	if _, err := quietSide.Write([]byte("hello")); err != nil {
		t.Error(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(quiet, got); err != nil || string(got) != "hello" {
		t.Errorf("who was quiet gets %q (%v)", got, err)
	}
}
