// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
)

// Fork starts a copy of this cluster, with all objects, resource versions and UIDs. It returns when a Deployment
// could become Available in the copy. This cluster is neither stopped nor changed. The copy has its own port and
// keys. Options control its lifetime: the zero value is private to this process.
//
// The copy has the Kubernetes version and the admission plugins of this cluster, unless the options set others. It
// has as many nodes as this cluster if Options.Nodes is 0.
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

// checkRunning checks whether the control plane process exists, without sending a request.
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
