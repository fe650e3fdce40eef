// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package devcmd

import (
	"context"
	"errors"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/target"
)

// devTarget is the cluster of a session.
type devTarget struct {
	*target.Target

	stateDir string
	cluster  dev.Cluster
	// kubectl is a command that works on the cluster.
	kubectl string
}

func (a verbs) findDevTarget(ctx context.Context, o devOptions, found *project.Project) (*devTarget, error) {
	opened, err := a.Targets().Open(ctx, o.Which)
	if err != nil {
		return nil, err
	}
	t := &devTarget{
		Target: opened, stateDir: a.DevStateDirOn(opened, found.Name),
		cluster: dev.Cluster{
			Config: opened.Config, KubeconfigAs: opened.KubeconfigAs, CallsBack: opened.Ours, Done: opened.Done(),
		},
	}
	if opened.Ours {
		t.cluster.Kubectl = a.Command("kubectl", o.Name)
		t.kubectl = a.Command("kubectl", o.Name, "get events -A")
	} else {
		// The namespace has to exist, as for the fleet.
		err = opened.Reach(ctx)
	}
	if err == nil {
		t.cluster.Kubeconfig, err = opened.Kubeconfig()
	}
	if err != nil {
		return nil, errors.Join(err, opened.Leave())
	}
	return t, nil
}
