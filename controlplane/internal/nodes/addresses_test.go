// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"net/netip"
	"testing"
)

func mustHave(t *testing.T, a *addresses, owner, want string) {
	t.Helper()
	got, err := a.of(owner)
	if err != nil || got != want {
		t.Errorf("address of %s = %s, %v; want %s", owner, got, err, want)
	}
}

func TestAddressesGoOnAfterARelease(t *testing.T) {
	a := newAddresses(netip.MustParsePrefix("10.0.0.0/29"))
	mustHave(t, a, "one", "10.0.0.1")
	mustHave(t, a, "two", "10.0.0.2")
	mustHave(t, a, "one", "10.0.0.1") // asked again
	a.release("one")
	mustHave(t, a, "three", "10.0.0.3")
	mustHave(t, a, "one", "10.0.0.4") // the same owner after a release is a new one
}

func TestAddressesAreReusedAfterTheLast(t *testing.T) {
	a := newAddresses(netip.MustParsePrefix("10.0.0.0/30"))
	mustHave(t, a, "one", "10.0.0.1")
	mustHave(t, a, "two", "10.0.0.2")
	mustHave(t, a, "three", "10.0.0.3")
	if got, err := a.of("four"); err == nil {
		t.Errorf("address of four = %s; want an error, as all are in use", got)
	}
	a.release("two")
	mustHave(t, a, "four", "10.0.0.2")
	a.release("four")
	mustHave(t, a, "five", "10.0.0.2") // the only free one, although handed out last
}

func TestAddressesFromBeforeARestart(t *testing.T) {
	a := newAddresses(netip.MustParsePrefix("10.0.0.0/29"))
	a.occupy("old", "10.0.0.5")
	a.occupy("older", "10.0.0.2")
	a.occupy("of another network", "192.168.0.1")
	a.occupy("of no network", "")
	mustHave(t, a, "old", "10.0.0.5")
	mustHave(t, a, "new", "10.0.0.6")
	mustHave(t, a, "newer", "10.0.0.7")
	mustHave(t, a, "newest", "10.0.0.1")
	mustHave(t, a, "last", "10.0.0.3") // .2 is older's
}

func TestNetworksDoNotOverlap(t *testing.T) {
	networks := []netip.Prefix{podNetwork, numberedNodeNetwork, namedNodeNetwork}
	for i, one := range networks {
		for _, other := range networks[i+1:] {
			if one.Overlaps(other) {
				t.Errorf("%s overlaps %s", one, other)
			}
		}
	}
}
