// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

// TestRunAllSamples does what a new user does.
func TestRunAllSamples(t *testing.T) {
	u := newCLI(t)
	out, messages, code := u.run(t, "run", "--until-ready", "--timeout", "2m", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, messages)
	}
	var table []struct {
		Kind, Name string
		Ready      bool
	}
	try(t, json.Unmarshal([]byte(out), &table))
	kinds := map[string]bool{}
	for _, row := range table {
		kinds[row.Kind] = true
	}
	if len(kinds) != 5 {
		t.Errorf("not all five kinds are there:\n%s", out)
	}
	if strings.Contains(messages, "skipped sample") {
		t.Errorf("not all samples were applied:\n%s", messages)
	}

	status := u.status(t, "dock")
	if status.State != cluster.Stopped || !strings.Contains(messages, `Cluster "dock" is stopped and its objects are kept`) {
		t.Errorf("the cluster that was started for the run is %s:\n%s", status.State, messages)
	}
	if log, err := os.ReadFile(filepath.Join(status.Dir, "fleet.log")); err != nil || len(log) == 0 {
		t.Errorf("there is no log of the fleet: %v", err)
	}
}

func TestRunOnAClusterThatRuns(t *testing.T) {
	u := newCLI(t)
	_, messages, code := u.run(t, "run", "--until-ready", "--keep", "--samples", "nginx-app", "--namespace", "made-for-it")
	if code != 0 || u.status(t, "dock").State != cluster.Alive {
		t.Fatalf("exit code %d\n%s", code, messages)
	}

	// It is still there for a second run, which has nothing to start, and stays after an interrupt.
	process, said := u.background(t, "run", "--namespace", "made-for-it", "--samples", "nginx-app")
	said.await(t, "AppService nginx-app: Ready")
	try(t, process.Process.Signal(syscall.SIGINT))
	said.await(t, `Cluster "dock" was already running and keeps running`)
	if err := process.Wait(); err != nil {
		t.Errorf("an interrupt is how it ends, but: %v", err)
	}
	if state := u.status(t, "dock").State; state != cluster.Alive {
		t.Errorf("the cluster that was running before is %s", state)
	}

	// The cluster is stopped in another terminal.
	process, said = u.background(t, "run", "--namespace", "made-for-it", "--samples", "none")
	said.await(t, "AppService nginx-app: Ready")
	u.ok(t, "down")
	said.await(t, `opdock: cluster "dock" is stopped`)
	if process.Wait() == nil {
		t.Error("the exit code says that all is well")
	}
}

// A run that is killed takes its cluster along, and the next one goes on from there.
func TestRunIsKilled(t *testing.T) {
	u := newCLI(t)
	process, said := u.background(t, "run", "--samples", "robot_v1_robot")
	said.await(t, "Robot robot-one: Ready")
	try(t, process.Process.Kill())
	_ = process.Wait() // it was killed
	testenv.Eventually(t, "the cluster ends with the run", func() error {
		return expect("alive", u.status(t, "dock").State == cluster.Alive, false)
	})
	if out := u.ok(t, "run", "--until-ready", "--samples", "robot_v1_robot"); !strings.Contains(out, "robot-one") {
		t.Errorf("the robot is gone:\n%s", out)
	}
}
