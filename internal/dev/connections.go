// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

const (
	// connectionInterval is how often the connections of an operator are read. The kernel reports no changes.
	connectionInterval = time.Second
	// connectionPatience is how long an operator may take to connect to its cluster.
	connectionPatience = 10 * time.Second
	resolveTimeout     = 3 * time.Second
)

// endpoint is an API server, and where it can be found.
type endpoint struct {
	name      string // of the cluster in a kubeconfig
	server    string // URL
	addresses []netip.AddrPort
}

func (e endpoint) has(address netip.AddrPort) bool { return slices.Contains(e.addresses, address) }

// endpointsIn are the API servers that a kubeconfig names. What cannot be read or resolved is left out: it cannot be
// connected to either.
func endpointsIn(ctx context.Context, kubeconfig []byte) []endpoint {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	var all []endpoint
	for name, cluster := range config.Clusters {
		if found := resolve(ctx, cluster.Server); len(found) > 0 {
			all = append(all, endpoint{name: name, server: cluster.Server, addresses: found})
		}
	}
	slices.SortFunc(all, func(a, b endpoint) int { return strings.Compare(a.name, b.name) })
	return all
}

func resolve(ctx context.Context, server string) []netip.AddrPort {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Hostname() == "" {
		return nil
	}
	port := parsed.Port()
	if port == "" {
		port = map[string]string{"http": "80"}[parsed.Scheme]
	}
	if port == "" {
		port = "443"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", parsed.Hostname())
	if err != nil {
		return nil
	}
	addresses := make([]netip.AddrPort, 0, len(found))
	for _, one := range found {
		addresses = append(addresses, netip.AddrPortFrom(one.Unmap(), uint16(number)))
	}
	return addresses
}

// overlook warns that the operator uses another cluster than the one it was given.
type overlook struct {
	given endpoint
	own   []endpoint // the user's, without the given one
}

// judge returns what is wrong with the connections of an operator. late means that it has had enough time to
// connect.
func (o overlook) judge(connected []netip.AddrPort, late bool) string {
	for _, address := range connected {
		for _, mine := range o.own {
			if mine.has(address) {
				return fmt.Sprintf("WARNING: the operator is connected to %s, which is cluster %q of your own kubeconfig, and may change it; "+
					"the operator does not use the kubeconfig that it was given in KUBECONFIG: press q, and check how it finds its cluster", mine.server, mine.name)
			}
		}
	}
	if !late || slices.ContainsFunc(connected, o.given.has) {
		return ""
	}
	remote := slices.DeleteFunc(slices.Clone(connected), func(one netip.AddrPort) bool { return one.Addr().IsLoopback() })
	where := "it has no connection to another machine either"
	if len(remote) > 0 {
		where = "it is connected to " + remote[0].String()
	}
	return fmt.Sprintf("WARNING: the operator has no connection to %s, the cluster that it was given; %s: "+
		"check that it uses KUBECONFIG, for example with ctrl.GetConfig", o.given.server, where)
}

// connectionsOf returns the remote addresses of a process' TCP connections, on Linux.
func connectionsOf(pid int) (addresses []netip.AddrPort, known bool) {
	process := filepath.Join("/proc", strconv.Itoa(pid))
	descriptors, err := os.ReadDir(filepath.Join(process, "fd"))
	if err != nil {
		return nil, false
	}
	sockets := map[string]bool{}
	for _, descriptor := range descriptors {
		target, err := os.Readlink(filepath.Join(process, "fd", descriptor.Name()))
		if inode, found := strings.CutPrefix(target, "socket:["); err == nil && found {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		content, err := os.ReadFile(filepath.Join(process, "net", table))
		if err != nil {
			continue
		}
		known = true
		addresses = append(addresses, peersIn(string(content), sockets)...)
	}
	return addresses, known
}

// peersIn reads the remote addresses of established connections from a table of the kernel's.
func peersIn(table string, sockets map[string]bool) (peers []netip.AddrPort) {
	const stateEstablished, remote, state, inode = "01", 2, 3, 9
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) <= inode || fields[state] != stateEstablished || !sockets[fields[inode]] {
			continue
		}
		if peer, valid := kernelAddress(fields[remote]); valid {
			peers = append(peers, peer)
		}
	}
	return peers
}

// kernelAddress reads 0100007F:1F90, which is 127.0.0.1:8080: words of four bytes, each the wrong way round.
func kernelAddress(text string) (netip.AddrPort, bool) {
	address, port, found := strings.Cut(text, ":")
	raw, err := hex.DecodeString(address)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if !found || err != nil || portErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	parsed, valid := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(parsed.Unmap(), uint16(number)), valid
}

// watchConnections warns once if the operator does not use the cluster that it was given.
func (s *Session) watchConnections(p *process, kubeconfig []byte) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	given := endpointsIn(ctx, kubeconfig)
	if len(given) != 1 {
		return
	}
	o := overlook{given: given[0], own: s.ownEndpoints(ctx, given[0])}
	throughProxy := !o.given.addresses[0].Addr().IsLoopback() && usesProxy(s.Env)
	ticker := time.NewTicker(connectionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
		}
		connected, known := connectionsOf(p.cmd.Process.Pid)
		if !known {
			return
		}
		if wrong := o.judge(connected, !throughProxy && time.Since(p.began) > connectionPatience); wrong != "" {
			s.Screen.Say(wrong)
			return
		}
	}
}

func usesProxy(env []string) bool {
	return lastValue(env, "HTTPS_PROXY") != "" || lastValue(env, "https_proxy") != ""
}

// ownKubeconfigs are the user's kubeconfigs, which the operator must not use.
func (s *Session) ownKubeconfigs() []string {
	paths := filepath.SplitList(lastValue(s.Env, "KUBECONFIG"))
	if home := lastValue(s.Env, "HOME"); home != "" {
		paths = append(paths, filepath.Join(home, kubeFolder, "config"))
	}
	return paths
}

// ownEndpoints are the API servers in the user's kubeconfigs, which are read for nothing else.
func (s *Session) ownEndpoints(ctx context.Context, given endpoint) []endpoint {
	var all []endpoint
	for _, path := range s.ownKubeconfigs() {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for _, one := range endpointsIn(ctx, content) {
			if !slices.ContainsFunc(one.addresses, given.has) {
				all = append(all, one)
			}
		}
	}
	return all
}
