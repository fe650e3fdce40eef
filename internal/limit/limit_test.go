// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"errors"
	"net"
	"testing"
)

func TestListenerAcceptsOnlySoMany(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limited := Listener(inner, 1)
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
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
	for range 2 {
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
	}
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
