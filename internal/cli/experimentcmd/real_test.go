// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experimentcmd

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/experiment"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/target"
)

func TestExperimentOnARealCluster(t *testing.T) {
	fleettest.Config(t) // skips the test if there is no control plane
	dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane"}
	// Not the one that the tests share: the experiment leaves its namespaces to the end of its cluster.
	private, err := cluster.Start(t.Context(), cluster.Options{Binary: os.Getenv("OPDOCK_CONTROLPLANE")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := private.Stop(); err != nil {
			t.Error(err)
		}
	})
	dock.Start = func(context.Context, cluster.Options) (target.Running, error) {
		return &clitest.FakeCluster{Dock: dock, File: private.Kubeconfig()}, nil
	}
	user := newConsole(dock)
	user.Now = time.Now
	code, screen := user.Screen(t.Context(), "experiment", "reconciles", "--only", "recreate-2", "--containers", "1", "-o", "json")
	if code != cmdutil.ExitOK {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	var result experiment.Result
	if err := json.Unmarshal(user.OutText.Bytes(), &result); err != nil {
		t.Fatalf("%v\n%s", err, user.OutText)
	}
	if len(result.Rows) != 1 || result.Rows[0].Change != "recreate-2" || len(result.Rows[0].Plain().Trace.Events) != 2 {
		t.Errorf("the result is %s", user.OutText)
	}
	for _, line := range []string{"Deployment, 1 container: strategy", "AppService, 1 container: strategy"} {
		if !strings.Contains(user.ErrText.String(), line) {
			t.Errorf("nothing says %q:\n%s", line, user.ErrText)
		}
	}
	if len(dock.Stopped) != 1 {
		t.Errorf("%d clusters were stopped", len(dock.Stopped))
	}
}
