// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/testenv"
)

func TestClusterOfDevIsProposed(t *testing.T) {
	yard := cluster.Status{Name: "yard", State: cluster.Alive}
	const hint = "to use the cluster that is alive: --name yard"
	for name, test := range map[string]struct {
		all  []cluster.Status
		args []string
		want bool
	}{
		"none named":  {[]cluster.Status{yard}, []string{"kubeconfig"}, true},
		"one named":   {[]cluster.Status{yard}, []string{"kubeconfig", "--name", "who"}, false},
		"none alive":  {[]cluster.Status{{Name: "yard", State: cluster.Stopped}}, []string{"kubeconfig"}, false},
		"stopped":     {[]cluster.Status{yard, {Name: "dock", State: cluster.Stopped}}, []string{"kubectl", "get", "pods"}, true},
		"dead":        {[]cluster.Status{yard, {Name: "dock", State: cluster.Dead}}, []string{"kubectl", "get", "pods"}, true},
		"two to take": {[]cluster.Status{yard, {Name: "other", State: cluster.Alive}}, []string{"kubeconfig"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			code, screen := newConsole(&clitest.FakeDock{Clusters: clitest.Clusters(test.all...)}).Screen(t.Context(), test.args...)
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			if got := strings.Contains(screen, hint); got != test.want {
				t.Errorf("hint: %t\n%s", got, screen)
			}
		})
	}
}

// inProject makes a project the current directory, whose operator opdock has run.
func inProject(t *testing.T, name string, s *clitest.Console) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	testenv.WriteFile(t, filepath.Join(dir, "go.mod"), "module example.com/"+name+"\n")
	t.Chdir(dir)
	found, err := project.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	s.Dock.Home = func() string { return home }
	if err := s.RememberProject(name, found); err != nil {
		t.Fatal(err)
	}
}

func TestKubectlInTheFolderOfAProject(t *testing.T) {
	alive := func(name string) cluster.Status { return cluster.Status{Name: name, State: cluster.Alive} }
	const note = "Using cluster \"dock\". To use the cluster of this project: opdock kubectl --name ship\n"
	for name, test := range map[string]struct {
		all   []cluster.Status
		args  []string
		env   []string
		width int
		want  string
	}{
		"dock is stopped":      {[]cluster.Status{alive("ship"), alive("other"), {Name: "dock", State: cluster.Stopped}}, nil, nil, 80, "to use the cluster of this project: --name ship\n"},
		"both are alive":       {[]cluster.Status{alive("ship"), alive("dock")}, nil, nil, 80, note},
		"in a script":          {[]cluster.Status{alive("ship"), alive("dock")}, nil, nil, 0, ""},
		"selected":             {[]cluster.Status{alive("ship"), alive("dock")}, []string{"--name", "dock"}, nil, 80, ""},
		"selected for a shell": {[]cluster.Status{alive("ship"), alive("dock")}, nil, []string{"OPDOCK_CLUSTER=dock"}, 80, ""},
		"dev is not running":   {[]cluster.Status{{Name: "ship", State: cluster.Stopped}, alive("dock")}, nil, nil, 80, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(&clitest.FakeDock{Binary: "/bin/cp", Clusters: clitest.Clusters(test.all...)})
			inProject(t, "ship", s)
			s.Env, s.ErrWidth = test.env, test.width
			_, screen := s.Screen(t.Context(), slices.Concat([]string{"kubectl"}, test.args, []string{"get", "frigates"})...)
			if got := s.ErrText.String(); !strings.HasSuffix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("%q is not the end of\n%s", test.want, screen)
			}
		})
	}
}
