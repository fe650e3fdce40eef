// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	port, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := Taken(port); err != nil || taken {
		t.Errorf("it is taken: %v, %v", taken, err)
	}
	for _, host := range []string{"", loopback} {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		if taken, err := Taken(port); err != nil || !taken {
			t.Errorf("a process listens on %q: %v, %v", listener.Addr(), taken, err)
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOutgoingConnectionsHaveOtherPorts(t *testing.T) {
	content, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Skip(err) // the range is told by Linux only
	}
	lowest, err := strconv.Atoi(strings.Fields(string(content))[0])
	if err != nil {
		t.Fatal(err)
	}
	if lowest < 32768 {
		t.Skipf("the port range of this machine is wider: it starts at %d", lowest)
	}
	if first+count > lowest {
		t.Errorf("ports from %d on may be taken by others, and those found are up to %d", lowest, first+count-1)
	}
}
