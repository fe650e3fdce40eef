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
)

// dialOnlyLoopback makes the connections that the server opens for its users
// (to kubelets for logs and exec, to pods and services for proxying, webhooks
// and extension servers) fail unless they go to this machine.
func dialOnlyLoopback(config *kubecontrolplane.Config) {
	config.ControlPlane.ProxyTransport.DialContext = dialLoopback
	config.KubeletClientConfig.Lookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
		return dialLoopback, nil
	}
}

func dialLoopback(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s is simulated and has no network; only addresses of this machine can be reached", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}
