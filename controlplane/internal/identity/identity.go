// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity makes client configurations that act under the identity a
// component has in a real cluster, so that RBAC, admission webhooks and managed
// fields see what they would see there.
package identity

import (
	"fmt"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The users under which the parts of the control plane act.
const (
	ControllerManager = "system:kube-controller-manager"
	Scheduler         = "system:kube-scheduler"
	authenticated     = "system:authenticated"
)

// As returns a copy of the loopback configuration that acts as the user with
// exactly that user's rights. Impersonation needs no certificate, no token and
// no request, so a start-up with forty identities costs nothing.
func As(loopback *rest.Config, user, userAgent string, groups ...string) *rest.Config {
	config := rest.CopyConfig(loopback)
	config.UserAgent = userAgent
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, authenticated)}
	return config
}

// ControllerClients builds the clients of the controllers, each under the
// service account of kube-system that it has in a real cluster.
type ControllerClients struct {
	Loopback *rest.Config
}

const systemNamespace = "kube-system"

// Config returns the configuration of the controller of that name.
func (b ControllerClients) Config(name string) (*rest.Config, error) {
	user := serviceaccount.MakeUsername(systemNamespace, name)
	return As(b.Loopback, user, "kube-controller-manager/"+name, serviceaccount.MakeGroupNames(systemNamespace)...), nil
}

// Client returns a client for the controller of that name.
func (b ControllerClients) Client(name string) (kubernetes.Interface, error) {
	config, err := b.Config(name)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// DiscoveryClient returns a discovery client for the controller of that name.
func (b ControllerClients) DiscoveryClient(name string) (discovery.DiscoveryInterface, error) {
	config, err := b.Config(name)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// ConfigOrDie, ClientOrDie and DiscoveryClientOrDie complete the interface that
// upstream controllers expect. Building a client fails only on a broken
// configuration, which is a mistake in this program.

// ConfigOrDie is Config without an error.
func (b ControllerClients) ConfigOrDie(name string) *rest.Config { return must(b.Config(name)) }

// ClientOrDie is Client without an error.
func (b ControllerClients) ClientOrDie(name string) kubernetes.Interface { return must(b.Client(name)) }

// DiscoveryClientOrDie is DiscoveryClient without an error.
func (b ControllerClients) DiscoveryClientOrDie(name string) discovery.DiscoveryInterface {
	return must(b.DiscoveryClient(name))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("building a client: %v", err))
	}
	return value
}
