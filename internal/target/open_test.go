// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opdock/opdock/cluster"
)

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}],
contexts: [{name: c, context: {cluster: c, user: u, namespace: team-a}}], users: [{name: u}]}`

type fakeCluster struct {
	file    string
	stopped *bool
	users   *int
}

func (c fakeCluster) Kubeconfig() string { return c.file }
func (c fakeCluster) KubeconfigAs(user string, _ ...string) ([]byte, error) {
	return []byte(user), nil
}
func (c fakeCluster) Done() <-chan struct{} { return nil }
func (c fakeCluster) Stop() error           { *c.stopped = true; return nil }
func (c fakeCluster) InUse() bool           { return *c.users > 0 }
func (c fakeCluster) Keep() error           { *c.users++; return nil }
func (c fakeCluster) Use() (release func(), err error) {
	*c.users++
	return func() { *c.users-- }, nil
}
func (c fakeCluster) Fork(context.Context, cluster.Options) (Running, error) {
	return nil, errors.New("nobody forks here")
}

// opener returns one whose cluster is in a state, what it says about leaving it, and whether it was stopped.
func opener(t *testing.T, state cluster.State) (o *Opener, file string, told *[]Leaving, stopped *bool) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	told, stopped = &[]Leaving{}, new(bool)
	running := fakeCluster{file, stopped, new(int)}
	status := cluster.Status{Name: "dock", Dir: "/state/dock", State: state}
	return &Opener{
		Dock: Dock{
			Find: func(string) (cluster.Status, error) { return status, nil },
			Open: func(string) (Running, error) {
				if status.State != cluster.Alive {
					return nil, &cluster.NotRunningError{Status: status}
				}
				return running, nil
			},
		},
		Getenv: func(string) string { return "" },
		Start: func(context.Context, Which, cluster.Status) (Running, error) {
			status.State = cluster.Alive
			return running, nil
		},
		Leaving: func(what Leaving, _ string) { *told = append(*told, what) },
	}, file, told, stopped
}

func TestClusterIsLeftAsItWasFound(t *testing.T) {
	for name, test := range map[string]struct {
		state   cluster.State
		keep    bool
		told    []Leaving
		stopped bool
	}{
		"running before":           {cluster.Alive, false, []Leaving{StillRunning}, false},
		"running before, and kept": {cluster.Alive, true, []Leaving{StillRunning}, false},
		"started":                  {cluster.Stopped, false, []Leaving{Stopping, Stopped}, true},
		"started, and kept":        {cluster.Dead, true, []Leaving{Kept}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, told, stopped := opener(t, test.state)
			found, err := o.Open(t.Context(), Which{Name: "dock", Namespace: "default", Keep: test.keep})
			if err != nil {
				t.Fatal(err)
			}
			if found.Started != (test.state != cluster.Alive) || !found.Ours || found.Title != `cluster "dock"` || found.StateDir != "/state/dock" {
				t.Errorf("got %+v", found)
			}
			if err := found.Leave(); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(*told, test.told) || *stopped != test.stopped {
				t.Errorf("told %v, stopped: %t", *told, *stopped)
			}
		})
	}
}

// A cluster that was started here keeps running while another session uses it.
func TestClusterIsLeftToOthers(t *testing.T) {
	o, _, told, stopped := opener(t, cluster.Stopped)
	which := Which{Name: "dock", Namespace: "default"}
	first, err := o.Open(t.Context(), which)
	if err != nil {
		t.Fatal(err)
	}
	second, err := o.Open(t.Context(), which)
	if err != nil {
		t.Fatal(err)
	}
	for _, leave := range []func() error{first.Leave, second.Leave} {
		if err := leave(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(*told, []Leaving{Shared, StillRunning}) || *stopped {
		t.Errorf("told %v, stopped: %t", *told, *stopped)
	}
	// If the other one leaves before, there is no reason to keep it.
	o, _, told, stopped = opener(t, cluster.Stopped)
	if first, err = o.Open(t.Context(), which); err != nil {
		t.Fatal(err)
	}
	if second, err = o.Open(t.Context(), which); err != nil {
		t.Fatal(err)
	}
	for _, leave := range []func() error{second.Leave, first.Leave} {
		if err := leave(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(*told, []Leaving{StillRunning, Stopping, Stopped}) || !*stopped {
		t.Errorf("told %v, stopped: %t", *told, *stopped)
	}
}

func TestOpenRunningStartsNothing(t *testing.T) {
	o, _, told, _ := opener(t, cluster.Stopped)
	var notRunning *cluster.NotRunningError
	if _, err := o.OpenRunning(Which{Name: "dock"}); !errors.As(err, &notRunning) || len(*told) > 0 {
		t.Errorf("got %v, told %v", err, *told)
	}
}

func TestForeignClusterComesFromTheKubeconfig(t *testing.T) {
	for name, test := range map[string]struct {
		ofContext bool
		namespace string
	}{
		"namespace of the context": {true, "team-a"},
		"namespace as given":       {false, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			o, file, told, stopped := opener(t, cluster.NeverStarted)
			found, err := o.Open(t.Context(), Which{Kubeconfig: file, Namespace: "default", NamespaceOfContext: test.ofContext})
			if err != nil {
				t.Fatal(err)
			}
			if found.Ours || found.Namespace != test.namespace || found.FileName != "127.0.0.1-1" || found.Done() != nil || found.Ended() != nil {
				t.Errorf("got %+v", found)
			}
			if err := found.Leave(); err != nil || len(*told) > 0 || *stopped {
				t.Errorf("leaving it: %v, told %v", err, *told)
			}
		})
	}
}
