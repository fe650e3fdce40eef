// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestConnectionsOfAProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lists the connections of a process")
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}
		defer listener.Close()
		want := listener.Addr().(*net.TCPAddr).AddrPort()
		has := func() bool {
			connected, known := connectionsOf(os.Getpid())
			if !known {
				t.Fatal("the connections of this process are not known")
			}
			return slices.Contains(connected, want)
		}
		if has() {
			t.Errorf("there is a connection to %s already", want)
		}
		connection, err := net.Dial("tcp", want.String())
		if err != nil {
			t.Fatal(err)
		}
		if !has() {
			t.Errorf("the connection to %s is not seen", want)
		}
		connection.Close()
	}
}

func TestKernelAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"00000000000000000000000001000000:01BB": "[::1]:443",
		"0000000000000000FFFF00000100007F:01BB": "127.0.0.1:443",
	} {
		if got, valid := kernelAddress(text); !valid || got.String() != want {
			t.Errorf("%s is %s", text, got)
		}
	}
	for _, text := range []string{"", "0100007F", "zz:1", "0100:1F90", "0100007F:FFFFF"} {
		if got, valid := kernelAddress(text); valid {
			t.Errorf("%s is %s", text, got)
		}
	}
}

func TestAnOperatorOnAnotherCluster(t *testing.T) {
	at := netip.MustParseAddrPort
	o := overlook{
		given: endpoint{server: "https://127.0.0.1:6443", addresses: []netip.AddrPort{at("127.0.0.1:6443")}},
		own:   []endpoint{{name: "production", server: "https://prod.example:443", addresses: []netip.AddrPort{at("10.0.0.1:443"), at("10.0.0.2:443")}}},
	}
	for name, test := range map[string]struct {
		connected []netip.AddrPort
		late      bool
		says      string
	}{
		"as it should be":          {[]netip.AddrPort{at("127.0.0.1:6443"), at("10.9.9.9:443")}, true, ""},
		"not yet":                  {nil, false, ""},
		"never":                    {nil, true, "no connection to https://127.0.0.1:6443, the cluster that it was given; it has no connection"},
		"elsewhere":                {[]netip.AddrPort{at("10.9.9.9:443")}, true, "it is connected to 10.9.9.9:443"},
		"on the user's":            {[]netip.AddrPort{at("10.0.0.2:443")}, false, `https://prod.example:443, which is cluster "production" of your own kubeconfig`},
		"on the user's as well":    {[]netip.AddrPort{at("127.0.0.1:6443"), at("10.0.0.2:443")}, true, `cluster "production" of your own kubeconfig`},
		"another port of the same": {[]netip.AddrPort{at("127.0.0.1:6443"), at("10.0.0.2:5432")}, true, ""},
	} {
		if got := o.judge(test.connected, test.late); test.says == "" && got != "" || !strings.Contains(got, test.says) {
			t.Errorf("%s: it says %q", name, got)
		}
	}
}

func TestEndpoints(t *testing.T) {
	found := endpointsIn(t.Context(), []byte(`
apiVersion: v1
kind: Config
clusters:
- {name: b, cluster: {server: "https://127.0.0.1:6443"}}
- {name: a, cluster: {server: "https://127.0.0.2"}}
- {name: c, cluster: {server: "http://[::1]"}}
- {name: nonsense, cluster: {server: "127.0.0.3"}}
`))
	var got []string
	for _, one := range found {
		got = append(got, one.name+" "+one.addresses[0].String())
	}
	if want := []string{"a 127.0.0.2:443", "b 127.0.0.1:6443", "c [::1]:80"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if endpointsIn(t.Context(), []byte("}{")) != nil {
		t.Error("nonsense names API servers")
	}
}
