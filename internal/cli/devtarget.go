// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/project"
)

func (a *App) findDevTarget(ctx context.Context, o devOptions, found *project.Project) (*devTarget, error) {
	if o.foreign() {
		return a.foreignDevTarget(ctx, o, found)
	}
	status, err := a.Dock.Find(o.name)
	if err != nil {
		return nil, err
	}
	wasAlive := status.State == cluster.Alive
	var c Running
	if wasAlive {
		c, err = a.Dock.Open(o.name)
	} else {
		c, err = a.startFor(ctx, runOptions{name: o.name, nodes: o.nodes, keep: o.keep, timeout: o.timeout}, status)
	}
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
			return a.leaveDev(c, o, wasAlive)
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

func (a *App) leaveDev(c Running, o devOptions, wasAlive bool) error {
	status, err := a.Dock.Find(o.name)
	switch {
	case err == nil && status.State != cluster.Alive:
		return nil // it has ended before us, and that was said
	case wasAlive:
		fmt.Fprintf(a.Err, "Cluster %q was running before and still is; stop it: %s\n", o.name, a.command("down", o.name))
		return nil
	case o.keep:
		fmt.Fprintf(a.Err, "Cluster %q is left running; stop it: %s\n", o.name, a.command("down", o.name))
		return nil
	}
	fmt.Fprintf(a.Err, "Stopping cluster %q\n", o.name)
	if err := c.Stop(); err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "Cluster %q is stopped; its objects are kept. Remove them: %s\n", o.name, a.command("down", o.name, "--delete"))
	return nil
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
	place := strings.Trim(notInFileNames.ReplaceAllString(strings.TrimPrefix(config.Host, "https://"), "-"), "-")
	t := &devTarget{
		title: config.Host, stateDir: a.devStateDir(place + "-" + found.Name),
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
