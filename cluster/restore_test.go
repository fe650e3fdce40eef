// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/testenv"
)

// startNamed starts a fake cluster as opdock up does. It ends with the test.
func startNamed(t *testing.T, o Options) Status {
	t.Helper()
	o.Detach, o.Binary = true, testBinary(t)
	if _, err := Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endNamed(t, o.Name) })
	return find(t, o.Name)
}

func endNamed(t *testing.T, name string) {
	t.Helper()
	if c, err := Open(name); err == nil {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
}

func find(t *testing.T, name string) Status {
	t.Helper()
	s, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fakeSnapshotFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "base.snapshot")
	if err := writeFakeSnapshot(path, "source"); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestANewerSnapshotDoesNotStopTheCluster(t *testing.T) {
	isolate(t)
	content := fmt.Sprintf("%s%d\n{\"kubernetes\":\"v1.37.0\",\"objects\":1}\ndata", snapshotMagic, snapshotFormat)
	path := filepath.Join(t.TempDir(), "newer.snapshot")
	if err := os.WriteFile(path, fmt.Appendf([]byte(content), "%x\n", sha256.Sum256([]byte(content))), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ephemeral := range []bool{false, true} {
		before := startNamed(t, Options{Name: fmt.Sprintf("dock-%v", ephemeral), Ephemeral: ephemeral})
		_, err := Restore(t.Context(), Options{Name: before.Name, From: path, Detach: true, Binary: testBinary(t)})
		var unusable *SnapshotError
		if !errors.As(err, &unusable) || !strings.Contains(unusable.Reason, "v1.37.0") {
			t.Errorf("got %v", err)
		}
		if now := find(t, before.Name); now != before {
			t.Errorf("the cluster was %+v and is %+v", before, now)
		}
	}
}

func TestRestoreKeepsPortAndLifetime(t *testing.T) {
	isolate(t)
	path := fakeSnapshotFile(t)
	for _, ephemeral := range []bool{false, true} {
		before := startNamed(t, Options{Name: fmt.Sprintf("dock-%v", ephemeral), Ephemeral: ephemeral, Port: 40123})
		if _, err := Restore(t.Context(), Options{Name: before.Name, From: path, Detach: true, Binary: testBinary(t)}); err != nil {
			t.Fatal(err)
		}
		now := find(t, before.Name)
		if now.PID == before.PID || now.Server != before.Server || now.Ephemeral != ephemeral || now.State != Alive {
			t.Errorf("the cluster was %+v and is %+v", before, now)
		}
		if from, _ := os.ReadFile(filepath.Join(now.Dir, "from")); string(from) != path {
			t.Errorf("it was started from %q", from)
		}
		if endNamed(t, before.Name); exists(before.Dir) == ephemeral {
			t.Errorf("ephemeral %v, and after the stop the state is there: %v", ephemeral, !ephemeral)
		}
	}
}

func TestRestoreKeepsOptionsOfARunningCluster(t *testing.T) {
	isolate(t)
	o := Options{Name: "dock", From: fakeSnapshotFile(t), Detach: true, Binary: testBinary(t)}
	options := func() string {
		running, _, err := readState(find(t, "dock").Dir)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(running.Durable, running.History)
	}
	startNamed(t, Options{Name: "dock", Durable: true, History: time.Hour})
	if _, err := Restore(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := options(); got != "true 1h0m0s" {
		t.Errorf("after the first restore: %s", got)
	}
	o.History = time.Minute
	if _, err := Restore(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := options(); got != "true 1m0s" {
		t.Errorf("after a restore with another history: %s", got)
	}
	// They are options of a run, and a stopped cluster has none.
	endNamed(t, "dock")
	o.History = 0
	if _, err := Restore(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := options(); got != "false 0s" {
		t.Errorf("after a restore of a stopped cluster: %s", got)
	}
}

func TestAFailedRestoreStartsTheClusterAgain(t *testing.T) {
	isolate(t)
	path := fakeSnapshotFile(t)
	for _, ephemeral := range []bool{false, true} {
		before := startNamed(t, Options{Name: fmt.Sprintf("dock-%v", ephemeral), Ephemeral: ephemeral, Port: 40123})
		if err := os.WriteFile(filepath.Join(before.Dir, "precious"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(behaviourEnv, "refuses to replace")
		_, err := Restore(t.Context(), Options{Name: before.Name, From: path, Detach: true, Binary: testBinary(t)})
		var failed *RestoreError
		var start *StartError
		if !errors.As(err, &failed) || failed.NotStarted != nil || !errors.As(err, &start) || start.Reason != ReasonBadSnapshot {
			t.Errorf("got %v", err)
		}
		now := find(t, before.Name)
		if now.State != Alive || now.Server != before.Server || now.Ephemeral != ephemeral || !exists(filepath.Join(now.Dir, "precious")) {
			t.Errorf("the cluster was %+v and is %+v", before, now)
		}
		t.Setenv(behaviourEnv, "")
	}
}

func TestOneRestoreAtATime(t *testing.T) {
	isolate(t)
	before := startNamed(t, Options{Name: "dock"})
	release, err := lockRestore("dock")
	if err != nil {
		t.Fatal(err)
	}
	restore := func() error {
		_, err := Restore(t.Context(), Options{Name: "dock", From: fakeSnapshotFile(t), Detach: true, Binary: testBinary(t)})
		return err
	}
	var start *StartError
	if err := restore(); !errors.As(err, &start) || start.Reason != ReasonRestoring {
		t.Errorf("got %v", err)
	}
	if now := find(t, "dock"); now != before {
		t.Errorf("the cluster was %+v and is %+v", before, now)
	}
	release()
	if err := restore(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(clustersDir(), ".restore-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// slowToStop starts a cluster whose stop begins with a signal and ends with finish.
func slowToStop(t *testing.T) (finish func()) {
	t.Helper()
	isolate(t)
	marker := filepath.Join(t.TempDir(), "finish")
	t.Setenv("OPDOCK_TEST_MARKER", marker)
	t.Setenv(behaviourEnv, "slow")
	startNamed(t, Options{Name: "dock"})
	t.Setenv(behaviourEnv, "")
	finish = func() { _ = os.WriteFile(marker, nil, 0o600) }
	t.Cleanup(finish) // before the cluster is stopped
	return finish
}

func beginStop(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(find(t, "dock").PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "it is stopping", func() bool { return find(t, "dock").Stopping })
}

func TestSeveralStopsWaitForTheSameCleanOne(t *testing.T) {
	finish := slowToStop(t)
	beginStop(t)
	var stops sync.WaitGroup
	for range 3 {
		c, err := Open("dock")
		if err != nil {
			t.Fatal(err)
		}
		stops.Go(func() {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	finish()
	stops.Wait()
	if now := find(t, "dock"); now.State != Stopped {
		t.Errorf("the cluster is %s", now.State)
	}
}

func TestAStartWaitsForTheStop(t *testing.T) {
	finish := slowToStop(t)
	before := find(t, "dock")
	beginStop(t)
	started := make(chan error, 1)
	go func() {
		_, err := Start(t.Context(), Options{Name: "dock", Detach: true, Binary: testBinary(t)})
		started <- err
	}()
	finish()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if now := find(t, "dock"); now.State != Alive || now.PID == before.PID {
		t.Errorf("the cluster was %+v and is %+v", before, now)
	}
}

func TestAnUncleanStopIsAnError(t *testing.T) {
	isolate(t)
	t.Setenv(behaviourEnv, "dirty")
	startNamed(t, Options{Name: "dock"})
	c, err := Open("dock")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err == nil || !strings.Contains(err.Error(), "without a clean stop") {
		t.Errorf("got %v", err)
	}
}

func TestAnIncompleteCopyIsNoEmptyCluster(t *testing.T) {
	isolate(t)
	dir := clusterDir("fork")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	state := fmt.Sprintf(`{"format":1,"kubernetes":%q,"filling":"/state/clusters/dock"}`, KubernetesVersion)
	if err := os.WriteFile(filepath.Join(dir, stateFileName), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, lockFileName), []byte(`{"pid":999999999}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if now := find(t, "fork"); now.State != Incomplete || now.Source != "/state/clusters/dock" {
		t.Errorf("it is %+v", now)
	}
	_, err := Start(t.Context(), Options{Name: "fork", Binary: testBinary(t)})
	var start *StartError
	if !errors.As(err, &start) || start.Reason != ReasonIncomplete || !strings.Contains(start.Message, "/state/clusters/dock") {
		t.Errorf("started without objects: %v", err)
	}
	c, err := Start(t.Context(), Options{Name: "fork", From: fakeSnapshotFile(t), Binary: testBinary(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}
