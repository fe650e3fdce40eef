// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// lay writes files below the state folder of a cluster.
func lay(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := clusterDir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const goodState = `{"format":1,"kubernetes":"v1.2.3","port":41234,"ephemeral":true,"created":"2026-01-01T00:00:00Z"}`

func TestFindWhatDoesNotRun(t *testing.T) {
	isolate(t)
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := map[string]struct {
		files map[string]string
		want  Status
	}{
		"no folder":    {nil, Status{State: NeverStarted}},
		"empty folder": {map[string]string{}, Status{State: NeverStarted}},
		"failed early": {map[string]string{"lock": "", "controlplane.log": "no"}, Status{State: NeverStarted}},
		"stopped": {map[string]string{"lock": "", "state.json": goodState},
			Status{State: Stopped, Version: "v1.2.3", Server: "https://127.0.0.1:41234", Ephemeral: true}},
		"stopped, lock file lost": {map[string]string{"state.json": goodState},
			Status{State: Stopped, Version: "v1.2.3", Server: "https://127.0.0.1:41234", Ephemeral: true}},
		"dead": {map[string]string{"lock": `{"pid":77,"started":"2026-01-02T03:04:05Z"}`, "state.json": goodState},
			Status{State: Dead, PID: 77, Started: started, Version: "v1.2.3", Server: "https://127.0.0.1:41234", Ephemeral: true}},
		"dead, and said why": {map[string]string{"lock": `{"pid":77}`, "controlplane.log": "I0102 a\nI0102 cut oopdock-controlplane: the disk is full\n"},
			Status{State: Dead, PID: 77, LastWords: "the disk is full"}},
		"dead, and an earlier one said why": {map[string]string{"lock": `{"pid":77}`, "controlplane.log": "opdock-controlplane: the port is taken\nI0102 started\n"},
			Status{State: Dead, PID: 77}},
		"dead before it had state":  {map[string]string{"lock": `{"pid":77}`}, Status{State: Dead, PID: 77}},
		"dead, time not understood": {map[string]string{"lock": `{"started":"soon","pid":77}`}, Status{State: Dead, PID: 77}},
		"dead, lock cut off":        {map[string]string{"lock": `{"pid":7`}, Status{State: Dead}},
		"dead, lock is garbage":     {map[string]string{"lock": "\x00\xff"}, Status{State: Dead}},
		"dead, not a process":       {map[string]string{"lock": `{"pid":-1}`}, Status{State: Dead}},
		"dead, not even that":       {map[string]string{"lock": `[null]`}, Status{State: Dead}},
		"state is garbage":          {map[string]string{"state.json": "\x00"}, Status{State: Stopped}},
		"state is empty":            {map[string]string{"state.json": ""}, Status{State: Stopped}},
		"state has no such port":    {map[string]string{"state.json": `{"port":-5,"kubernetes":"v1"}`}, Status{State: Stopped, Version: "v1"}},
		"state has another type":    {map[string]string{"state.json": `{"port":"x","kubernetes":"v1"}`}, Status{State: Stopped, Version: "v1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(homeEnv, t.TempDir())
			c.want.Name, c.want.Dir = "dev", clusterDir("dev")
			if c.files != nil {
				lay(t, "dev", c.files)
			}
			got, err := Find("dev")
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
			_, err = Open("dev")
			var not *NotRunningError
			if !errors.As(err, &not) || not.Status != c.want || !strings.Contains(err.Error(), "opdock up --name dev") {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

func TestFindWhatRuns(t *testing.T) {
	isolate(t)
	dir := lay(t, "dev", nil)
	lock, err := takeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	status, err := Find("dev")
	if err != nil || status.State != Alive || status.PID != os.Getpid() || status.Started.IsZero() {
		t.Errorf("status is %+v, %v", status, err)
	}
	if _, err := Open("dev"); err == nil || !strings.Contains(err.Error(), "still starting") {
		t.Errorf("without a kubeconfig: %v", err)
	}
	lay(t, "dev", map[string]string{"kubeconfig": "garbage: ["})
	if _, err := Open("dev"); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "kubeconfig")) {
		t.Errorf("with a broken kubeconfig: %v", err)
	}
	// Between taking the lock and writing to it.
	if err := lock.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if status, err = Find("dev"); err != nil || status.State != Alive || status.PID != 0 {
		t.Errorf("status is %+v, %v", status, err)
	}
}

func TestLookingDoesNotKeepTheLock(t *testing.T) {
	isolate(t)
	dir := lay(t, "dev", map[string]string{"lock": ""})
	looking, err := openLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer looking.Close()
	if _, err := looking.look(); err != nil {
		t.Fatal(err)
	}
	lock, err := takeLock(dir)
	if err != nil {
		t.Fatalf("the lock is still taken: %v", err)
	}
	lock.Close()
}

func TestList(t *testing.T) {
	isolate(t)
	if got, err := List(); err != nil || len(got) != 0 {
		t.Errorf("without a home: %v, %v", got, err)
	}
	lay(t, "stopped", map[string]string{"state.json": goodState})
	lay(t, "dead", map[string]string{"lock": `{"pid":77}`})
	lay(t, "failed", map[string]string{"controlplane.log": "no"})
	lay(t, ".deleted-123", map[string]string{"state.json": goodState})
	lock, err := takeLock(lay(t, "alive", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := os.WriteFile(filepath.Join(clustersDir(), "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A state file that is a folder cannot be read even by root.
	if err := os.Mkdir(filepath.Join(lay(t, "unreadable", nil), stateFileName), 0o700); err != nil {
		t.Fatal(err)
	}
	expect := func(list func() ([]Status, error), want ...string) {
		t.Helper()
		found, err := list()
		if err == nil || !strings.Contains(err.Error(), "unreadable") {
			t.Errorf("error is %v", err)
		}
		var got []string
		for _, status := range found {
			got = append(got, status.Name+" "+string(status.State))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect(List, "alive Alive", "dead Dead", "stopped Stopped")
	expect(ListAll, "alive Alive", "dead Dead", "failed NeverStarted", "stopped Stopped")
}

func TestDelete(t *testing.T) {
	isolate(t)
	if err := Delete("unknown"); err != nil {
		t.Errorf("what is not there: %v", err)
	}
	for name, files := range map[string]map[string]string{
		"stopped": {"lock": "", "state.json": goodState},
		"dead":    {"lock": `{"pid":77}`, "state.json": goodState},
		"failed":  {"controlplane.log": "no"},
	} {
		dir := lay(t, name, files)
		if err := Delete(name); err != nil || exists(dir) {
			t.Errorf("%s: error %v, still there: %v", name, err, exists(dir))
		}
	}
	dir := lay(t, "alive", map[string]string{"state.json": goodState})
	lock, err := takeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := Delete("alive"); err == nil || !strings.Contains(err.Error(), "opdock down --name alive") {
		t.Errorf("alive: %v", err)
	}
	if !exists(filepath.Join(dir, stateFileName)) {
		t.Error("the state of a living cluster is gone")
	}
	if left, _ := filepath.Glob(filepath.Join(clustersDir(), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNames(t *testing.T) {
	isolate(t)
	for name, good := range map[string]bool{
		"a": true, "0": true, "dev": true, "my-cluster-2": true, strings.Repeat("a", 40): true,
		"": false, "-a": false, "a-": false, "A": false, "a.b": false, "a_b": false, "..": false, "a/b": false,
		"../../etc": false, "a\n": false, "ä": false, strings.Repeat("a", 41): false,
	} {
		_, err := Find(name)
		var wrong *NameError
		if errors.As(err, &wrong) == good {
			t.Errorf("%q: %v", name, err)
		}
		if !good && !errors.As(Delete(name), &wrong) {
			t.Errorf("Delete(%q) is not refused", name)
		}
	}
}

func TestStatusAsJSON(t *testing.T) {
	data, err := json.Marshal(Status{Name: "dev", Dir: "/d", State: NeverStarted})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"name":"dev","dir":"/d","state":"NeverStarted","ephemeral":false}`; string(data) != want {
		t.Errorf("got %s, want %s", data, want)
	}
}
