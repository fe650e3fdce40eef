// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
	kubecontrolplane "k8s.io/kubernetes/pkg/controlplane"

	"github.com/opdock/opdock/controlplane/internal/kubelet"
)

// dialOnlyLoopback makes the connections that the server opens for its users
// (to pods and services for proxying, to webhooks and extension servers) fail
// unless they go to this machine.
func dialOnlyLoopback(config *kubecontrolplane.Config) {
	config.ControlPlane.ProxyTransport.DialContext = dialLoopback
}

// dialSimulated connects to the simulated kubelets for logs and exec. A real node that is
// registered on this machine is connected directly.
func dialSimulated(config *kubecontrolplane.Config, kubelets *kubelet.Server) {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if isLoopback(address) {
			return dialLoopback(ctx, network, address)
		}
		return kubelets.Dial(ctx, network, address)
	}
	config.KubeletClientConfig.Lookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) { return dial, nil }
}

func dialLoopback(ctx context.Context, network, address string) (net.Conn, error) {
	if !isLoopback(address) {
		return nil, fmt.Errorf("%s is simulated and has no network; only addresses of this machine can be reached", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
