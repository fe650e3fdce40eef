// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"net/netip"
	"sync"
)

// The networks of the simulation. They must not overlap each other or the service network; nothing
// routes to them.
var (
	podNetwork = netip.MustParsePrefix("10.128.0.0/9")
	// numberedNodeNetwork holds node-0, node-1, …: the address follows from the number.
	numberedNodeNetwork = netip.MustParsePrefix("10.64.0.0/16")
	// namedNodeNetwork holds nodes of any other name, which a user has created.
	namedNodeNetwork = netip.MustParsePrefix("10.65.0.0/16")
)

// addresses hands out the addresses of one network, each to one owner. It goes through the whole
// network before it hands out a released address again, so an address that a client remembers does
// not belong to another pod a moment later.
type addresses struct {
	network netip.Prefix

	mu     sync.Mutex
	last   netip.Addr // handed out last; invalid as long as no address is in use
	owners map[netip.Addr]string
	held   map[string]netip.Addr
}

func newAddresses(network netip.Prefix) *addresses {
	return &addresses{
		network: network.Masked(),
		owners:  map[netip.Addr]string{},
		held:    map[string]netip.Addr{},
	}
}

// occupy notes an address that an owner has already, from before a restart, and makes the next
// address come after it. Addresses of other networks are ignored.
func (a *addresses) occupy(owner, address string) {
	parsed, err := netip.ParseAddr(address)
	if err != nil || !a.network.Contains(parsed) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owners[parsed] = owner
	a.held[owner] = parsed
	if a.last.Less(parsed) {
		a.last = parsed
	}
}

// of returns the owner's address; asked again it returns the same one.
func (a *addresses) of(owner string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if address, ok := a.held[owner]; ok {
		return address.String(), nil
	}
	for candidate := a.after(a.last); ; candidate = a.after(candidate) {
		if _, taken := a.owners[candidate]; !taken {
			a.last = candidate
			a.owners[candidate] = owner
			a.held[owner] = candidate
			return candidate.String(), nil
		}
		if candidate == a.last {
			return "", fmt.Errorf("all addresses of %s are in use", a.network)
		}
	}
}

// after is the next address of the network; the first one follows the last. The network's own
// address is not used.
func (a *addresses) after(address netip.Addr) netip.Addr {
	if next := address.Next(); a.network.Contains(next) {
		return next
	}
	return a.network.Addr().Next()
}

// release gives the owner's address back.
func (a *addresses) release(owner string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if address, ok := a.held[owner]; ok {
		delete(a.owners, address)
		delete(a.held, owner)
	}
}
