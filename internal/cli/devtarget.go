// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/project"
)

func (a *App) findDevTarget(ctx context.Context, o devOptions, found *project.Project) (*devTarget, error) {
	if o.foreign() {
		return a.foreignDevTarget(ctx, o, found)
	}
	c, leave, err := a.openCluster(ctx, o.whichCluster)
	if err != nil {
		return nil, err
	}
	done, stopWatching := a.watchEnd(c, o.name)
	t := &devTarget{
		title: fmt.Sprintf("cluster %q", o.name), stateDir: a.devStateDir(o.name),
		cluster: dev.Cluster{KubeconfigAs: kubeconfigAs(c), CallsBack: true, Done: done},
		kubectl: a.command("kubectl", o.name, "get events -A"),
		ended:   func() error { return a.endOf(o.name) },
		leave: func() error {
			stopWatching()
			return leave()
		},
	}
	t.cluster.Config, _, err = a.loadKubeconfig(c.Kubeconfig(), "")
	if err == nil {
		t.cluster.Kubeconfig, err = os.ReadFile(c.Kubeconfig())
	}
	if err != nil {
		return nil, errors.Join(err, t.leave())
	}
	return t, nil
}

// watchEnd returns a channel that is closed when the cluster ends. Only whoever has started a cluster is told; others
// have to look now and then.
func (a *App) watchEnd(c Running, name string) (done <-chan struct{}, stop func()) {
	if done := c.Done(); done != nil {
		return done, func() {}
	}
	ended, quit := make(chan struct{}), make(chan struct{})
	go func() {
		ticker := time.NewTicker(aliveInterval)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				if a.endOf(name) != nil {
					close(ended)
					return
				}
			}
		}
	}()
	return ended, sync.OnceFunc(func() { close(quit) })
}

func (a *App) foreignDevTarget(ctx context.Context, o devOptions, found *project.Project) (*devTarget, error) {
	config, loaded, err := a.loadKubeconfig(o.kubeconfig, o.context)
	if err != nil {
		return nil, err
	}
	// The namespace has to exist, as for the fleet.
	if err := (&target{title: config.Host, config: config, namespace: o.namespace}).reach(ctx); err != nil {
		return nil, err
	}
	t := &devTarget{
		title: config.Host, stateDir: a.devStateDir(fileNameOf(config) + "-" + found.Name),
		cluster: dev.Cluster{
			Config: config,
			KubeconfigAs: func(ctx context.Context, namespace, name string) ([]byte, error) {
				return dev.TokenKubeconfig(ctx, config, namespace, name)
			},
		},
		ended: func() error { return nil },
		leave: func() error { return nil },
	}
	t.cluster.Kubeconfig, err = selfContained(loaded, o.context)
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
