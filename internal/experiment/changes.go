// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// State is a desired state of a Deployment or an AppService.
type State struct {
	Replicas int32
	Strategy appsv1.DeploymentStrategyType
}

const (
	rolling  = appsv1.RollingUpdateDeploymentStrategyType
	recreate = appsv1.RecreateDeploymentStrategyType
)

// Change is one of the changes that the learner made.
type Change struct {
	// Name identifies the change on the command line. Title describes it in tables.
	Name, Title string
	// From is the state before the change.
	From State

	// Either to is the new state, or deletes is the number of pods to delete.
	to      State
	deletes int
}

// Changes returns all changes, in an order that needs little preparation between them.
func Changes() []Change {
	three, four, two := State{3, rolling}, State{4, rolling}, State{2, rolling}
	scale := func(from, to int32) Change {
		return Change{
			Name: fmt.Sprintf("scale-%d-%d", from, to), Title: fmt.Sprintf("replicas %d → %d", from, to),
			From: State{from, rolling}, to: State{to, rolling},
		}
	}
	strategy := func(from State, to appsv1.DeploymentStrategyType) Change {
		return Change{
			Name:  fmt.Sprintf("%s-%d", strings.ToLower(string(to)), from.Replicas),
			Title: fmt.Sprintf("strategy %s → %s, %d replicas", from.Strategy, to, from.Replicas),
			From:  from, to: State{from.Replicas, to},
		}
	}
	return []Change{
		{Name: "delete-1", Title: "delete one pod of three", From: three, deletes: 1},
		{Name: "delete-2", Title: "delete two pods of three", From: three, deletes: 2},
		scale(3, 1), scale(1, 3), scale(3, 4),
		strategy(four, recreate), strategy(State{4, recreate}, rolling),
		scale(4, 0),
		strategy(two, recreate), strategy(State{2, recreate}, rolling),
	}
}

// ChangeNames returns the names of all changes.
func ChangeNames() []string {
	var names []string
	for _, change := range Changes() {
		names = append(names, change.Name)
	}
	return names
}

// ChooseChanges returns the changes with these names in their usual order, or all changes if names is empty.
func ChooseChanges(names []string) ([]Change, error) {
	if len(names) == 0 {
		return Changes(), nil
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var chosen []Change
	for _, change := range Changes() {
		if wanted[change.Name] {
			chosen = append(chosen, change)
			delete(wanted, change.Name)
		}
	}
	for _, name := range names {
		if wanted[name] {
			return nil, fmt.Errorf("change %q does not exist", name)
		}
	}
	return chosen, nil
}

// State returns the state after the change.
func (c *Change) State() State {
	if c.deletes > 0 {
		return c.From
	}
	return c.to
}

func (c *Change) make(ctx context.Context, s subject) error {
	if c.deletes > 0 {
		return s.deletePods(ctx, c.deletes)
	}
	return s.set(ctx, c.to)
}
