// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freeport finds ports, and keeps them free until a process listens on them.
//
// A port that the system gives to a process that asks for any is one that it gives to others, too: every outgoing connection takes
// one from the same range, from 32768 on (Linux) or 49152 (others). Those found here are below.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

const (
	loopback = "127.0.0.1"

	first = 20000
	count = 10000
	tries = 100
)

// Find returns a port that no process uses.
func Find() (int, error) {
	for range tries {
		port := first + rand.IntN(count) //nolint:gosec // not a secret
		taken, err := Taken(port)
		if err != nil {
			return 0, err
		}
		if !taken {
			return port, nil
		}
	}
	return 0, fmt.Errorf("none of the %d ports from %d to %d is free", tries, first, first+count-1)
}

// Address returns a loopback address with such a port.
func Address() (string, error) {
	port, err := Find()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(loopback, strconv.Itoa(port)), nil
}

// Taken reports whether a port is taken, of all addresses or of the loopback one: some systems let one listen on all while
// another listens on that.
func Taken(port int) (bool, error) {
	for _, host := range []string{"", loopback} {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			err = listener.Close()
		}
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("trying port %d: %w", port, err)
		}
	}
	return false, nil
}
