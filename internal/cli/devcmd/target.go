// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package devcmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/project"
)

func (a verbs) findDevTarget(ctx context.Context, o devOptions, found *project.Project) (*devTarget, error) {
	if o.Foreign() {
		return a.foreignDevTarget(ctx, o, found)
	}
	c, leave, err := a.OpenCluster(ctx, o.WhichCluster)
	if err != nil {
		return nil, err
	}
	done, stopWatching := a.WatchEnd(c, o.Name)
	t := &devTarget{
		title: fmt.Sprintf("cluster %q", o.Name), stateDir: a.DevStateDir(o.Name),
		cluster: dev.Cluster{KubeconfigAs: kubeconfigAs(c), CallsBack: true, Done: done},
		kubectl: a.Command("kubectl", o.Name, "get events -A"),
		ended:   func() error { return a.EndOf(o.Name) },
		leave: func() error {
			stopWatching()
			return leave()
		},
	}
	t.cluster.Config, _, err = a.LoadKubeconfig(c.Kubeconfig(), "")
	if err == nil {
		t.cluster.Kubeconfig, err = os.ReadFile(c.Kubeconfig())
	}
	if err != nil {
		return nil, errors.Join(err, t.leave())
	}
	return t, nil
}

func (a verbs) foreignDevTarget(ctx context.Context, o devOptions, found *project.Project) (*devTarget, error) {
	config, loaded, err := a.LoadKubeconfig(o.Kubeconfig, o.Context)
	if err != nil {
		return nil, err
	}
	// The namespace has to exist, as for the fleet.
	if err := (&cmdutil.Target{Title: config.Host, Config: config, Namespace: o.Namespace}).Reach(ctx); err != nil {
		return nil, err
	}
	t := &devTarget{
		title: config.Host, stateDir: a.DevStateDir(cmdutil.FileNameOf(config) + "-" + found.Name),
		cluster: dev.Cluster{
			Config: config,
			KubeconfigAs: func(ctx context.Context, namespace, name string) ([]byte, error) {
				return dev.TokenKubeconfig(ctx, config, namespace, name)
			},
		},
		ended: func() error { return nil },
		leave: func() error { return nil },
	}
	t.cluster.Kubeconfig, err = selfContained(loaded, o.Context)
	return t, err
}

// selfContained is a kubeconfig with one context and without references to other files.
func selfContained(loaded clientcmd.ClientConfig, contextName string) ([]byte, error) {
	raw, err := loaded.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if contextName != "" {
		raw.CurrentContext = contextName
	}
	if err := clientcmdapi.MinifyConfig(&raw); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(&raw); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return clientcmd.Write(raw)
}
