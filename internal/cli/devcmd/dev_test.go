// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package devcmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/filelock"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/testenv"
)

func TestDevThatCannotBegin(t *testing.T) {
	const module, program = "module example.com/ship\n", "package main\n\nfunc main() {}\n"
	for name, test := range map[string]struct {
		files     map[string]string
		arguments []string
		code      int
		says      []string
	}{
		"no project":      {map[string]string{"main.go": program}, nil, cmdutil.ExitUsage, []string{"no project found in", "--dir"}},
		"no such folder":  {nil, []string{"--dir", "/nonexistent"}, cmdutil.ExitUsage, []string{"no project found in /nonexistent: the directory does not exist", "--dir DIR"}},
		"no main package": {map[string]string{"go.mod": module, "lib/lib.go": "package lib\n"}, nil, cmdutil.ExitError, []string{"has no main package"}},
		"two programs": {
			map[string]string{"go.mod": module, "tools/a/main.go": program, "tools/b/main.go": program}, nil, cmdutil.ExitUsage,
			[]string{"./tools/a, ./tools/b", "opdock dev --main ./tools/a"},
		},
		"not a main package": {
			map[string]string{"go.mod": module, "main.go": program, "lib/lib.go": "package lib\n"}, []string{"--main", "./lib"}, cmdutil.ExitError,
			[]string{"./lib is not a main package"},
		},
		"a stray argument":        {nil, []string{"ship"}, cmdutil.ExitUsage, []string{"dev --dir ship", "dev -- ship"}},
		"one before the dashes":   {nil, []string{"ship", "--", "--verbose"}, cmdutil.ExitUsage, []string{"dev --dir ship"}},
		"an impossible name":      {nil, []string{"--namespace", "Not_A_Name"}, cmdutil.ExitUsage, []string{"--namespace cannot be"}},
		"no nodes":                {nil, []string{"--nodes", "0"}, cmdutil.ExitUsage, []string{"--nodes must be between 1 and 5000, not 0"}},
		"no time":                 {nil, []string{"--timeout", "0s"}, cmdutil.ExitUsage, []string{"--timeout must be more than 0"}},
		"too many nodes":          {nil, []string{"--nodes", "1000000"}, cmdutil.ExitUsage, []string{"--nodes must be between 1 and 5000"}},
		"a port for no debugger":  {nil, []string{"--debug-port", "2000"}, cmdutil.ExitUsage, []string{"--debug-port needs --debug"}},
		"no port of a debugger":   {nil, []string{"--debug", "--debug-port", "0"}, cmdutil.ExitUsage, []string{"--debug-port must be between 1 and 65535"}},
		"two clusters":            {nil, []string{"--context", "staging", "--name", "dock"}, cmdutil.ExitUsage, []string{"--name applies to a cluster of Opdock"}},
		"keeping somebody else's": {nil, []string{"--kubeconfig", "/k", "--keep"}, cmdutil.ExitUsage, []string{"--keep applies to a cluster of Opdock"}},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := append([]string{"dev", "--dir", testenv.Dir(t, test.files)}, test.arguments...)
			dock := &clitest.FakeDock{}
			code, screen := newConsole(dock).Screen(t.Context(), arguments...)
			clitest.ExpectCode(t, code, test.code)
			for _, part := range test.says {
				if !strings.Contains(screen, part) {
					t.Errorf("it does not say %q:\n%s", part, screen)
				}
			}
			if len(dock.Started) > 0 {
				t.Error("a cluster was started for nothing")
			}
		})
	}
}

// A second dev reports that, and nothing about a cluster that was not changed.
func TestSecondDev(t *testing.T) {
	home := testenv.Dir(t, map[string]string{"dev/ship/operator.log": ""})
	log, err := os.Open(filepath.Join(home, "dev", "ship", "operator.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := filelock.Exclusive(log); err != nil {
		t.Fatal(err)
	}
	s := newConsole(&clitest.FakeDock{Clusters: map[string]cluster.Status{"ship": {Name: "ship", State: cluster.Alive}}})
	s.Dock.Home = func() string { return home }
	code, screen := s.Screen(t.Context(), "dev", "--dir", testenv.Dir(t, map[string]string{
		"go.mod": "module example.com/ship\n", "main.go": "package main\n\nfunc main() {}\n",
	}))
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	if !strings.Contains(screen, `opdock: another opdock dev is already using cluster "ship"`) || strings.Contains(screen, "was already running") {
		t.Errorf("it says:\n%s", screen)
	}
}

// Projects of the same name that start at the same time have a cluster each.
func TestClaimsOfProjectsWithOneName(t *testing.T) {
	home := t.TempDir()
	app := newConsole(&clitest.FakeDock{}).App
	app.Dock.Home = func() string { return home }
	a := verbs{app}
	const projects = 4
	names := make([]string, projects)
	var group sync.WaitGroup
	for i := range projects {
		found := &project.Project{Name: "ship", Dir: testenv.Dir(t, map[string]string{"go.mod": fmt.Sprintf("module m%d/ship\n", i)})}
		group.Go(func() {
			var o devOptions
			claimed, err := a.claimCluster(t.Context(), &o, found)
			if err != nil {
				t.Errorf("project %d: %v", i, err)
				return
			}
			t.Cleanup(claimed.Release)
			names[i] = o.Name
			if _, err := a.claimCluster(t.Context(), &devOptions{}, found); err == nil || !strings.Contains(err.Error(), "another opdock dev is already using cluster") {
				t.Errorf("a second session of project %d: %v", i, err)
			}
		})
	}
	group.Wait()
	slices.Sort(names)
	if len(slices.Compact(names)) != projects || names[0] != "ship" {
		t.Errorf("the clusters are %v", names)
	}
}

func TestClusterOfAProject(t *testing.T) {
	a := newConsole(&clitest.FakeDock{}).App
	home := t.TempDir()
	a.Dock.Home = func() string { return home }
	for name, want := range map[string]string{
		"ship": "ship",
		strings.Repeat("a", 39) + "-" + strings.Repeat("b", 10): strings.Repeat("a", 39),
	} {
		if got := a.ClusterNameFor(&project.Project{Name: name}); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	// Two projects of one name have a cluster each, and keep it.
	first := &project.Project{Name: "ship", Dir: testenv.Dir(t, map[string]string{"go.mod": "module a/ship\n"})}
	second := &project.Project{Name: "ship", Dir: testenv.Dir(t, map[string]string{"go.mod": "module b/ship\n"})}
	if err := a.RememberProject(a.ClusterNameFor(first), first); err != nil {
		t.Fatal(err)
	}
	other := a.ClusterNameFor(second)
	if got := a.ClusterNameFor(first); got != "ship" || other == got || !strings.HasPrefix(other, "ship-") {
		t.Errorf("they have %s and %s", got, other)
	}
	if !a.WasDeveloped(first) || a.WasDeveloped(second) {
		t.Error("only the first was developed")
	}
	if err := os.RemoveAll(first.Dir); err != nil {
		t.Fatal(err)
	}
	if got := a.ClusterNameFor(second); got != "ship" {
		t.Errorf("the first is gone, and the second has %s", got)
	}
}

func TestDevShow(t *testing.T) {
	fine := dev.Round{
		Began: clitest.Noon, Changed: []string{"internal/controller/ships.go"},
		Steps: []dev.Step{{Name: "build", Text: "built", Took: dev.Duration(1200 * time.Millisecond)}, {Name: "restart", Text: "restarted"}},
		State: "reconciling", After: dev.Duration(300 * time.Millisecond),
	}
	broken := dev.Round{Began: clitest.Noon, Changed: []string{"main.go"}, Problem: &dev.Problem{
		Step: "build", Text: "the build failed; the previous operator keeps running", Lines: []string{"main.go:3:4: undefined: x"},
	}}
	crashed := dev.Round{Began: clitest.Noon, Reason: "the operator exited with status 2", Problem: &dev.Problem{
		Step: dev.StepRun, Text: "restarting in 1.0 s, or when a file changes", Lines: []string{"panic: aground"}, Hint: "port 9443 is in use by ship (pid 7)",
	}}
	show := func(s *clitest.Console, o devOptions) {
		shown := verbs{s.App}.newDevShow(o)
		shown.begin(`Developing ship on cluster "ship"`, "/state/dev/ship/operator.log", "opdock kubectl --name ship get events -A")
		if !shown.display.Live() {
			shown.Busy("building") // a terminal would draw it at unpredictable times
		}
		shown.Log("INFO Starting workers")
		shown.Round(fine)
		shown.Round(broken)
		shown.Log("panic: aground")
		shown.Round(crashed)
		shown.Say("something")
		shown.Busy("")
		shown.end()
	}
	for name, test := range map[string]struct {
		options  devOptions
		terminal bool
	}{
		"plain":    {devOptions{format: cmdutil.OutputText}, false},
		"quiet":    {devOptions{format: cmdutil.OutputText, quiet: true}, false},
		"terminal": {devOptions{format: cmdutil.OutputText}, true},
		"json":     {devOptions{format: cmdutil.OutputJSON}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(nil)
			released := false
			if test.terminal {
				s.ErrWidth, s.Colour = 100, true
				s.ErrSize = func() (int, int) { return 100, 30 }
				s.Keys = func() (<-chan string, func(), error) { return make(chan string), func() { released = true }, nil }
			}
			show(s, test.options)
			if released != test.terminal {
				t.Errorf("the keyboard was given back: %t", released)
			}
			if test.terminal && bytes.Contains(bytes.ReplaceAll(s.ErrText.Bytes(), []byte("\r\n"), nil), []byte("\n")) {
				t.Error("a line does not end as a terminal without processing needs it")
			}
			golden.Compare(t, "dev/"+name, s.OutText.String()+"--- stderr\n"+strings.ReplaceAll(s.ErrText.String(), "\r\n", "\n"))
			if test.options.format == cmdutil.OutputJSON {
				decoder, count := json.NewDecoder(s.OutText), 0
				for decoder.More() {
					var round dev.Round
					if err := decoder.Decode(&round); err != nil {
						t.Fatal(err)
					}
					count++
				}
				if count != 3 {
					t.Errorf("there are %d rounds", count)
				}
			}
		})
	}
}

func TestFoldParts(t *testing.T) {
	const line = "12:00:00 a.go changed · built 1.2 s · restarted · reconciling after 0.3 s"
	for width, want := range map[int]string{
		100: line,
		40:  "12:00:00 a.go changed · built 1.2 s\n         · restarted\n         · reconciling after 0.3 s",
		49:  "12:00:00 a.go changed · built 1.2 s · restarted\n         · reconciling after 0.3 s",
		1:   "12:00:00 a.go changed\n         · built 1.2 s\n         · restarted\n         · reconciling after 0.3 s",
	} {
		if got := strings.Join(foldParts(line, width), "\n"); got != want {
			t.Errorf("%d columns:\n%s", width, got)
		}
	}
}

// What would be in the way later on is said before a cluster starts.
func TestDevLooksBeforeItStartsACluster(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arguments []string
		path      string // none: as it is
		says      string
	}{
		"no Go":         {nil, t.TempDir(), "the go command was not found on PATH"},
		"page address":  {[]string{"--page-address", address}, "", "the page cannot be served at " + address},
		"debugger port": {[]string{"--debug", "--debug-port", port}, "", "port " + port + " for the debugger is in use"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.path != "" {
				t.Setenv("PATH", test.path)
			}
			dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane"}
			code, screen := newConsole(dock).Screen(t.Context(), append([]string{"dev", "--dir", testenv.Dir(t, map[string]string{
				"go.mod": "module example.com/ship\n", "main.go": "package main\n\nfunc main() {}\n",
			})}, test.arguments...)...)
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			if !strings.Contains(screen, test.says) || len(dock.Started) > 0 {
				t.Errorf("%d clusters were started, and it says:\n%s", len(dock.Started), screen)
			}
		})
	}
}
