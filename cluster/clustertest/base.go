// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
)

// Base is a cluster that is set up once, with CRDs and other objects that tests need. Each test
// gets its own copy. Tests that change nodes, webhooks, CRDs or other cluster-scoped objects
// cannot disturb each other and need not clean up.
//
// Declare one per test binary, as a package variable:
//
//	var base = clustertest.NewBase(func(ctx context.Context, c *cluster.Cluster) error {
//		return installCRDs(ctx, c.Config())
//	})
//
//	func TestShip(t *testing.T) {
//		t.Parallel()
//		c := base.Fork(t)
//		// …
//	}
type Base struct {
	setUp func(context.Context, *cluster.Cluster) error

	once    sync.Once
	cluster *cluster.Cluster
	log     string
	err     error
}

// NewBase returns a base. The first call of Fork runs setUp.
func NewBase(setUp func(context.Context, *cluster.Cluster) error) *Base { return &Base{setUp: setUp} }

// Fork returns a copy of the base, which stops when the test ends.
func (b *Base) Fork(t testing.TB) *cluster.Cluster {
	t.Helper()
	b.once.Do(b.start)
	if b.err != nil {
		t.Fatalf("preparing the cluster that tests get copies of: %v", b.err)
	}
	log, err := openLog("-" + strings.Trim(prefix(t.Name()), "-"))
	if err != nil {
		t.Fatalf("opening a log: %v", err)
	}
	defer log.Close() // the control plane has its own descriptor of it
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := b.cluster.Fork(ctx, cluster.Options{Log: log})
	if err != nil {
		t.Fatalf("forking a cluster: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the control plane is %s", log.Name())
		} else {
			_ = os.Remove(log.Name())
		}
		if err := c.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
	})
	return c
}

func (b *Base) start() {
	b.cluster, b.log, b.err = start()
	if b.err != nil || b.setUp == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), setUpPatience, fmt.Errorf("not set up after %v", setUpPatience))
	defer cancel()
	if err := b.setUp(ctx, b.cluster); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w (%w)", err, cause)
		}
		b.err = fmt.Errorf("setting it up: %w; the log of the control plane is %s", err, b.log)
	}
}

// setUpPatience limits setUp, which may start a whole fleet.
const setUpPatience = 5 * time.Minute
