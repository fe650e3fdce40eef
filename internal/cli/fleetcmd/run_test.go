// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/tree"
)

func TestChooseSamples(t *testing.T) {
	for name, test := range map[string]struct {
		names []string
		want  []string
	}{
		"none":             {[]string{"none"}, nil},
		"false":            {[]string{"false"}, nil},
		"a kind":           {[]string{"AppService"}, []string{"app_v1_appservice", "app_v1_appservice_full"}},
		"a kind, any case": {[]string{"robot"}, []string{"robot_v1_robot", "robot_v1_robot_full"}},
		"an object":        {[]string{"ring"}, []string{"kubegroup_v1_podcluster_full"}},
		"a file":           {[]string{"robot_v1_robot.yaml"}, []string{"robot_v1_robot"}},
		"an older version": {[]string{"app_v1alpha1_appservice"}, []string{"app_v1alpha1_appservice"}},
		"each only once":   {[]string{"shop", "app_v1_appservice_full", "shop"}, []string{"app_v1_appservice_full"}},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := chooseSamples(test.names)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range chosen {
				got = append(got, s.name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAllSamplesAreDifferentObjects(t *testing.T) {
	chosen, err := chooseSamples([]string{samplesAll})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, s := range chosen {
		object := s.object.GetKind() + " " + s.object.GetName()
		if other, twice := seen[object]; twice {
			t.Errorf("%s is in %s and in %s", object, other, s.name)
		}
		seen[object] = s.name
	}
	if len(seen) < 10 {
		t.Errorf("there are only %d samples", len(seen))
	}
}

// testRun is a run whose target is a fake one.
func testRun(s *clitest.Console) *fleetRun {
	return &fleetRun{
		verbs: verbs{s.App}, runOptions: runOptions{Which: target.Which{Timeout: time.Minute}, format: cmdutil.OutputText},
		target: &target.Target{Title: `cluster "dock"`, Namespace: "default"}, logPath: "/state/dock/fleet.log",
		model: tree.NewModel(),
		goals: []goal{
			{kind: "AppService", namespace: "default", name: "web", generation: 2},
			{kind: "AppService", namespace: "default", name: "shop"},
			{kind: "Robot", namespace: "default", name: "gone"},
		},
	}
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
			r := testRun(s)
			r.format = format
			r.model.Set(fleetObject("AppService", "default", "web", tree.Object{Generation: 2, State: tree.Good, Status: "Ready"}))
			r.model.Set(fleetObject("AppService", "default", "shop", tree.Object{
				State: tree.Bad, Status: "Stalled", Reason: "CrashLoopBackOff", Message: "pod shop-0: CrashLoopBackOff",
			}))
			r.model.Set(fleetObject("KAPP", "team-b", "other", tree.Object{State: tree.Busy, Status: "New"}))
			table := r.outcome(r.model.Snapshot())
			if err := r.printFinal(table); err != nil {
				t.Fatal(err)
			}
			if table.ready() {
				t.Error("that counts as ready")
			}
			s.Report(r.notReady(table))
			golden.Compare(t, "run/final-"+name, s.OutText.String()+"--- stderr\n"+s.ErrText.String())
		})
	}
}

func TestRunIsReadyWhenEverySampleIs(t *testing.T) {
	ready := func(generation int64) tree.Object {
		return tree.Object{Generation: generation, State: tree.Good, Status: "Ready"}
	}
	web, shop, gone := func(o tree.Object) tree.Object { return fleetObject("AppService", "default", "web", o) },
		fleetObject("AppService", "default", "shop", ready(1)), fleetObject("Robot", "default", "gone", ready(1))
	for name, test := range map[string]struct {
		objects []tree.Object
		want    bool
	}{
		"all":                        {[]tree.Object{web(ready(2)), shop, gone}, true},
		"one is missing":             {[]tree.Object{web(ready(2)), shop}, false},
		"one is seen too early":      {[]tree.Object{web(ready(1)), shop, gone}, false},
		"one is busy":                {[]tree.Object{web(tree.Object{Generation: 2, State: tree.Busy}), shop, gone}, false},
		"others do not matter":       {[]tree.Object{web(ready(2)), shop, gone, fleetObject("Robot", "default", "x", tree.Object{State: tree.Bad})}, true},
		"nor do those of other name": {[]tree.Object{web(ready(2)), shop, fleetObject("Robot", "team-b", "gone", ready(1))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRun(newConsole(nil))
			for _, o := range test.objects {
				r.model.Set(o)
			}
			if got := r.outcome(r.model.Snapshot()).ready(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestRunPlainLines(t *testing.T) {
	s := newConsole(nil)
	r := testRun(s)
	show := r.newShow(clitest.Noon)
	web := func(o tree.Object) { r.model.Set(fleetObject("AppService", "default", "web", o)) }
	for _, change := range []func(){
		func() { web(tree.Object{Status: "New", Message: "no controller has looked at it yet"}) },
		func() { web(tree.Object{Status: "Reconciling", Reason: "RollingOut", Message: "0 of 2"}) },
		func() { web(tree.Object{Status: "Reconciling", Reason: "RollingOut", Message: "1 of 2"}) }, // no change of readiness
		func() { r.model.Set(fleetObject("Robot", "team-b", "arm", tree.Object{Status: "Ready"})) },
		func() { web(tree.Object{Status: "Ready"}) },
		func() { r.model.Remove("AppServicedefaultweb") },
		func() { web(tree.Object{Status: "Ready"}) },
	} {
		change()
		show.update(r.model.Snapshot())
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
		"unreachable":     {[]string{"--kubeconfig", unreachable}, "the API server at https://127.0.0.1:1 cannot be used"},
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

func TestRunIsAloneOnItsCluster(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "if", "missing")
	const title = `cluster "dock"`
	here := filepath.Join(folder, "fleet.log")
	first, err := openFleetLog(title, here)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.WriteString("from before"); err != nil {
		t.Fatal(err)
	}
	if _, err := openFleetLog(title, here); err == nil || !strings.Contains(err.Error(), `another opdock run has the fleet on cluster "dock" already`) {
		t.Errorf("a second run is not refused: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openFleetLog(title, here)
	if err != nil {
		t.Fatalf("the next run is refused: %v", err)
	}
	defer again.Close()
	if log, err := os.ReadFile(here); err != nil || len(log) != 0 {
		t.Errorf("the log begins with that of the last run: %q (%v)", log, err)
	}
}
