// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/experiment"
	"github.com/opdock/opdock/internal/fleettest"
)

func TestExperimentOnARealCluster(t *testing.T) {
	fleettest.Config(t) // skips the test if there is no control plane
	dock := &fakeDock{binary: "/bin/opdock-controlplane"}
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
	dock.start = func(context.Context, cluster.Options) (Running, error) {
		return &fakeCluster{dock: dock, kubeconfig: private.Kubeconfig()}, nil
	}
	user := newConsole(dock)
	user.Now = time.Now
	code, screen := user.run(t.Context(), "experiment", "reconciles", "--only", "recreate-2", "--containers", "1", "-o", "json")
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	var result experiment.Result
	if err := json.Unmarshal(user.out.Bytes(), &result); err != nil {
		t.Fatalf("%v\n%s", err, user.out)
	}
	if len(result.Rows) != 1 || result.Rows[0].Change != "recreate-2" || len(result.Rows[0].Plain().Trace.Events) != 2 {
		t.Errorf("the result is %s", user.out)
	}
	for _, line := range []string{"Deployment, 1 container: strategy", "AppService, 1 container: strategy"} {
		if !strings.Contains(user.err.String(), line) {
			t.Errorf("nothing says %q:\n%s", line, user.err)
		}
	}
	if len(dock.stopped) != 1 {
		t.Errorf("%d clusters were stopped", len(dock.stopped))
	}
}
