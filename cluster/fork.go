// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
)

// Fork starts another cluster that has everything this one has at the moment, down to resource versions and UIDs, and
// returns when a Deployment could become Available in it. This cluster is neither stopped nor changed. The fork has its
// own port and its own keys, and lives and ends as the options say: the zero value is private to this process.
//
// The fork has the Kubernetes version and the admission plugins of this cluster, unless the options say otherwise. The
// fork has as many nodes as this cluster if Options.Nodes is 0.
func (c *Cluster) Fork(ctx context.Context, o Options) (*Cluster, error) {
	if o.From != "" || o.Replace {
		return nil, fmt.Errorf("forking %s: From and Replace are for snapshots and cannot be used with Fork", c.title())
	}
	if err := c.checkRunning(); err != nil {
		return nil, fmt.Errorf("forking %s: %w", c.title(), err)
	}
	if o.Binary == "" {
		o.Binary = c.binary
	}
	o.From = c.dir
	return Start(ctx, o)
}

// checkRunning finds out whether the control plane is there, without asking it.
func (c *Cluster) checkRunning() error {
	who, err := lookAt(c.dir)
	switch {
	case err != nil:
		return err
	case who.held:
		return nil
	case c.name == "":
		return errors.New("it has stopped")
	}
	status, err := Find(c.name)
	if err != nil {
		return err
	}
	return &NotRunningError{Status: status}
}
