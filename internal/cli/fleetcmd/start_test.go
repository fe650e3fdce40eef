// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"errors"
	"testing"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/run"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/testenv"
)

// A start that fails after the controllers run stops them, and returns why it failed.
func TestStartThatFails(t *testing.T) {
	testenv.ControlPlane(t)
	full := errors.New("the quota is exhausted")
	_, err := run.Start(t.Context(), run.Options{
		Target: &target.Target{Title: "a test", FileName: "test", Namespace: "default", Config: clustertest.Shared(t).Config()},
		Home:   t.TempDir(),
		Step: func(doing, _ string, _ func() error) error {
			if doing == "applying the samples" {
				return full
			}
			return nil
		},
	})
	if !errors.Is(err, full) {
		t.Error(err)
	}
}
