// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// A cluster that belongs to a process ends with it, unless another process uses the cluster.
func TestRealClusterStaysWhileItIsUsed(t *testing.T) {
	testenv.ControlPlane(t)
	t.Setenv("OPDOCK_HOME", t.TempDir())
	for name, test := range map[string]struct{ used, released, kept, stays bool }{
		"unused":   {},
		"used":     {used: true, stays: true},
		"released": {used: true, released: true},
		"kept":     {kept: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Start(t.Context(), Options{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Stop() })
			other, err := Open(name)
			if err != nil {
				t.Fatal(err)
			}
			if test.used {
				release, err := other.Use()
				if err != nil {
					t.Fatal(err)
				}
				if !c.InUse() || !other.InUse() {
					t.Error("it is not in use")
				}
				if test.released {
					release()
				} else {
					defer release()
				}
			}
			if test.kept {
				if err := other.Keep(); err != nil {
					t.Fatal(err)
				}
			}
			if c.InUse() != test.stays {
				t.Errorf("it is in use: %v", !test.stays)
			}
			if err := c.process.lifeline.Close(); err != nil { // as the end of this process does
				t.Fatal(err)
			}
			if !test.stays {
				<-c.Done()
				return
			}
			testenv.Eventually(t, "the control plane goes on", func() bool {
				log, err := os.ReadFile(filepath.Join(c.Dir(), logFileName))
				return err == nil && strings.Contains(string(log), "another one uses the cluster")
			})
			if status, err := Find(name); err != nil || status.State != Alive || status.Stopping {
				t.Errorf("it is %+v, %v", status, err)
			}
			if err := other.Stop(); err != nil {
				t.Errorf("stopping it: %v", err)
			}
			<-c.Done()
			if test.kept && c.InUse() {
				t.Error("it is in use after it has ended")
			}
		})
	}
}

// A cluster is kept until it stops: the next start decides again.
func TestRealClusterIsKeptOnce(t *testing.T) {
	testenv.ControlPlane(t)
	t.Setenv("OPDOCK_HOME", t.TempDir())
	for _, kept := range []bool{true, false} {
		c, err := Start(t.Context(), Options{Name: "kept"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Stop() })
		if kept {
			if err := c.Keep(); err != nil {
				t.Fatal(err)
			}
		}
		if c.InUse() != kept {
			t.Errorf("it is in use: %v", !kept)
		}
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}
