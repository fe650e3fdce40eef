// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/run"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/tree"
)

// testRun is a run whose target is a fake one.
func testRun(s *clitest.Console) *fleetRun {
	return &fleetRun{
		verbs: verbs{s.App}, runOptions: runOptions{Which: target.Which{Timeout: time.Minute}, format: cmdutil.OutputText},
		session: &run.Session{
			Options: run.Options{Target: &target.Target{Title: `cluster "dock"`, Namespace: "default"}}, LogPath: "/state/dock/fleet.log",
		},
	}
}

// goals are what has to become ready.
var goals = []run.Goal{
	{Kind: "AppService", Namespace: "default", Name: "web", Generation: 2},
	{Kind: "AppService", Namespace: "default", Name: "shop"},
	{Kind: "Robot", Namespace: "default", Name: "gone"},
}

func fleetObject(kind, namespace, name string, o tree.Object) tree.Object {
	o.Kind, o.Namespace, o.Name, o.Fleet = kind, namespace, name, true
	o.UID = types.UID(kind + namespace + name)
	o.Created = clitest.Noon.Add(-time.Minute)
	return o
}

func TestRunFinalTable(t *testing.T) {
	for name, format := range map[string]cmdutil.OutputFormat{"text": cmdutil.OutputText, "json": cmdutil.OutputJSON} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(nil)
			r, model := testRun(s), tree.NewModel()
			r.format = format
			model.Set(fleetObject("AppService", "default", "web", tree.Object{Generation: 2, State: tree.Good, Status: "Ready"}))
			model.Set(fleetObject("AppService", "default", "shop", tree.Object{
				State: tree.Bad, Status: "Stalled", Reason: "CrashLoopBackOff", Message: "pod shop-0: CrashLoopBackOff",
			}))
			model.Set(fleetObject("KAPP", "team-b", "other", tree.Object{State: tree.Busy, Status: "New"}))
			table := run.Outcome(goals, "default", model.Snapshot())
			if err := r.printFinal(table); err != nil {
				t.Fatal(err)
			}
			if table.Ready() {
				t.Error("that counts as ready")
			}
			s.Report(r.notReady(table))
			golden.Compare(t, "run/final-"+name, s.OutText.String()+"--- stderr\n"+s.ErrText.String())
		})
	}
}

func TestRunPlainLines(t *testing.T) {
	s := newConsole(nil)
	r, model := testRun(s), tree.NewModel()
	show := r.newShow(clitest.Noon)
	web := func(o tree.Object) { model.Set(fleetObject("AppService", "default", "web", o)) }
	for _, change := range []func(){
		func() { web(tree.Object{Status: "New", Message: "no controller has written its status yet"}) },
		func() { web(tree.Object{Status: "Reconciling", Reason: "RollingOut", Message: "0 of 2"}) },
		func() { web(tree.Object{Status: "Reconciling", Reason: "RollingOut", Message: "1 of 2"}) }, // no change of readiness
		func() { model.Set(fleetObject("Robot", "team-b", "arm", tree.Object{Status: "Ready"})) },
		func() { web(tree.Object{Status: "Ready"}) },
		func() { model.Remove("AppServicedefaultweb") },
		func() { web(tree.Object{Status: "Ready"}) },
	} {
		change()
		show.Update(model.Snapshot())
	}
	golden.Compare(t, "run/plain", s.ErrText.String())
}

func TestRunWithAKubeconfigThatCannotBeUsed(t *testing.T) {
	folder := t.TempDir()
	nonsense := filepath.Join(folder, "nonsense")
	if err := os.WriteFile(nonsense, []byte("no: kubeconfig: at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	unreachable := filepath.Join(folder, "unreachable")
	if err := os.WriteFile(unreachable, []byte(`{apiVersion: v1, kind: Config, current-context: c,
		clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"missing":         {[]string{"--kubeconfig", filepath.Join(folder, "missing")}, "cannot be used"},
		"nonsense":        {[]string{"--kubeconfig", nonsense}, "cannot be used"},
		"unknown context": {[]string{"--kubeconfig", unreachable, "--context", "other"}, `"other" does not exist`},
		"no home":         {[]string{"--context", "other"}, "cannot be used"},
		"unreachable":     {[]string{"--kubeconfig", unreachable}, "the API server at https://127.0.0.1:1 is not available"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(nil)
			code, screen := s.Screen(t.Context(), append([]string{"run", "--until-ready"}, test.args...)...)
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			if !strings.Contains(screen, test.says) {
				t.Errorf("%q is not in\n%s", test.says, screen)
			}
		})
	}
}

func TestRunLeavesTheClusterAsItWas(t *testing.T) {
	for name, test := range map[string]struct {
		args     []string
		before   []cluster.Status
		detached bool
		stopped  []string
	}{
		"started here":    {args: nil, stopped: []string{"dock"}},
		"kept":            {args: []string{"--keep"}, detached: true},
		"running before":  {before: []cluster.Status{clitest.Alive}},
		"kept and before": {args: []string{"--keep"}, before: []cluster.Status{clitest.Alive}},
	} {
		t.Run(name, func(t *testing.T) {
			dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane", Clusters: clitest.Clusters(test.before...)}
			well := clitest.StartsWell(dock)
			dock.Start = func(ctx context.Context, o cluster.Options) (target.Running, error) {
				dock.Clusters = clitest.Clusters(clitest.Alive)
				return well(ctx, o)
			}
			s := newConsole(dock)
			home := t.TempDir()
			s.Dock.Home = func() string { return home }
			// The fake cluster has no kubeconfig, so the run ends as soon as it wants to use it.
			code, screen := s.Screen(t.Context(), append([]string{"run", "--until-ready"}, test.args...)...)
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			clitest.ExpectSame(t, "stopped", dock.Stopped, test.stopped)
			if started := len(dock.Started) > 0; started != (len(test.before) == 0) || started && dock.Started[0].Detach != test.detached {
				t.Errorf("started with %+v", dock.Started)
			}
			golden.Compare(t, "run/leave-"+strings.ReplaceAll(name, " ", "-"), screen)
		})
	}
}
