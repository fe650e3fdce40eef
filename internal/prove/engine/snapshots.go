// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"

	"github.com/opdock/opdock/internal/prove/world"
)

// snapshots are the states of the clusters that were saved, by their files. A copy of a cluster does not show everything: of Endpoints
// that an operator made, the control plane may own all fields by then.
type snapshots struct {
	mutex  sync.Mutex
	states map[string]world.State
}

// of returns the state of the cluster in a file; nil if it is not known.
func (s *snapshots) of(file string) world.State {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.states[file]
}

func (s *snapshots) add(file string, state world.State) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.states == nil {
		s.states = map[string]world.State{}
	}
	s.states[file] = state
}

// save writes the cluster of a run to a file, from which other runs can begin.
func (r *run) save(ctx context.Context, file string) error {
	state := r.world.State()
	if _, err := r.cluster.Save(ctx, file); err != nil {
		return err
	}
	r.campaign.saved.add(file, state)
	return nil
}
