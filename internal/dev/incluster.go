// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"net/url"
	"os"
	"path"

	"k8s.io/client-go/tools/clientcmd"
)

// Some operators read only the in-cluster configuration: a token, a certificate authority and two variables of their
// pod. Others take these variables for a reason to use addresses of the cluster's network, so an operator gets them
// only after it has ended because they are missing.

// inCluster is the in-cluster configuration of an operator.
type inCluster struct {
	files map[string]string // by path
	env   []string
}

// newInCluster returns the in-cluster configuration for the cluster and the identity of a kubeconfig, or nil if there is
// none: a pod has a token, and its API server has a port.
func newInCluster(kubeconfig []byte) *inCluster {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil || config.BearerToken == "" || len(config.CAData) == 0 {
		return nil
	}
	server, err := url.Parse(config.Host)
	if err != nil || server.Scheme != "https" || server.Port() == "" || path.Clean("/"+server.Path) != "/" {
		return nil
	}
	dir := path.Dir(namespaceFile)
	return &inCluster{
		files: map[string]string{dir + "/token": config.BearerToken, dir + "/ca.crt": string(config.CAData)},
		env:   []string{"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()},
	}
}

// supply provides what an operator has ended for, if that is known and can be provided. It is worth another start then.
func (s *Session) supply(ctx context.Context) bool {
	if s.becomePod() {
		s.Screen.Say("the operator reads only the in-cluster configuration; it is started again with one, as in a pod")
		return true
	}
	return s.installMissing(ctx, s.process.ready.missing())
}

// becomePod gives an operator that has ended because it has no in-cluster configuration one for its next start. It
// returns false if the operator has one already, or cannot have one.
func (s *Session) becomePod() bool {
	if s.inCluster != nil || s.process.running() || !s.process.ready.readsOnlyInCluster() {
		return false
	}
	return s.configureAsPod()
}

// configureAsPod gives the operator an in-cluster configuration for its next start, if it can have one.
func (s *Session) configureAsPod() bool {
	kubeconfig, err := os.ReadFile(s.KubeconfigPath())
	if err != nil {
		return false
	}
	if s.inCluster = newInCluster(kubeconfig); s.inCluster == nil {
		return false
	}
	files, err := s.layOutFiles()
	if err == nil {
		if visible, _ := s.tryMounts(files); visible != nil {
			return true
		}
	}
	s.inCluster = nil
	return false
}
