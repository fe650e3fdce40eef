// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package devcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/project"
)

const (
	// ownerInterval is how often the project of another session is read, and ownerPatience how long: the session writes
	// it right after its claim.
	ownerInterval = 10 * time.Millisecond
	ownerPatience = time.Second
)

// claimCluster chooses a cluster of Opdock for the session, and keeps other sessions from it. Two projects of the same
// name may start at the same time, so the name is certain only after the claim.
func (a verbs) claimCluster(ctx context.Context, o *devOptions, found *project.Project) (*dev.Claim, error) {
	if o.Name != "" {
		return claim(a.DevStateDir(o.Name), clusterTitle(o.Name))
	}
	for {
		name := a.ClusterNameFor(found)
		claimed, err := dev.NewClaim(a.DevStateDir(name))
		busy := errors.Is(err, dev.ErrBusy)
		if busy {
			_ = wait.PollUntilContextTimeout(ctx, ownerInterval, ownerPatience, true, func(context.Context) (bool, error) {
				return a.ProjectOf(name) != "", nil
			})
		}
		switch {
		case a.ClusterNameFor(found) != name:
			// It belongs to another project now.
			claimed.Release()
			continue
		case busy:
			return nil, busyWith(clusterTitle(name))
		case err != nil:
			return nil, err
		}
		if err := a.RememberProject(name, found); err != nil {
			claimed.Release()
			return nil, err
		}
		o.Name = name
		return claimed, nil
	}
}

// claim claims the state directory of a session on a cluster.
func claim(stateDir, title string) (*dev.Claim, error) {
	claimed, err := dev.NewClaim(stateDir)
	if errors.Is(err, dev.ErrBusy) {
		return nil, busyWith(title)
	}
	return claimed, err
}

func clusterTitle(name string) string { return fmt.Sprintf("cluster %q", name) }

func busyWith(title string) error {
	return hint.With(fmt.Errorf("another opdock dev is already using %s", title), "stop that one first, or select another cluster with --name")
}
