// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/target"
)

func TestSplitKubectl(t *testing.T) {
	for line, want := range map[string]kubectlCall{
		"":                                      {cluster: "dock"},
		"get nodes":                             {cluster: "dock", needsCluster: true},
		"--name other get nodes":                {cluster: "other", args: []string{"get", "nodes"}, needsCluster: true},
		"--name=other get nodes":                {cluster: "other", args: []string{"get", "nodes"}, needsCluster: true},
		"--name=one --name two get":             {cluster: "two", args: []string{"get"}, needsCluster: true},
		"create quota --name other":             {cluster: "dock", needsCluster: true},
		"-n kube-system --name other":           {cluster: "dock", needsCluster: true},
		"--kubeconfig /x get nodes":             {cluster: "dock"},
		"get nodes --kubeconfig=/x":             {cluster: "dock"},
		"get nodes --context=kind":              {cluster: "dock"},
		"--name other --context kind get nodes": {cluster: "other", args: []string{"--context", "kind", "get", "nodes"}},
		"exec web -- tool --context=x -h":       {cluster: "dock", needsCluster: true},
		"get --contextual":                      {cluster: "dock", needsCluster: true},
		"--help":                                {cluster: "dock", ownHelp: true},
		"-h":                                    {cluster: "dock", ownHelp: true},
		"get --help":                            {cluster: "dock"},
		"help":                                  {cluster: "dock"},
		"completion bash":                       {cluster: "dock"},
		"kustomize config":                      {cluster: "dock"},
		"version":                               {cluster: "dock", needsCluster: true},
		"version --client":                      {cluster: "dock"},
		"config view":                           {cluster: "dock", needsCluster: true},
	} {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			if want.args == nil {
				want.args = args // untouched
			}
			got, err := splitKubectl(args, "dock")
			if err != nil {
				t.Fatal(err)
			}
			if got.cluster != want.cluster || !slices.Equal(got.args, want.args) ||
				got.needsCluster != want.needsCluster || got.ownHelp != want.ownHelp {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	for _, args := range [][]string{{"--name"}, {"--name="}, {"--name", ""}} {
		if _, err := splitKubectl(args, "dock"); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}

func TestKubectl(t *testing.T) {
	other := clitest.Alive
	other.Name = "other"
	for name, test := range map[string]struct {
		env  []string
		args []string
		exec string
	}{
		"default cluster": {
			args: []string{"get", "pods", "-A", "--watch", "-o", "json"},
			exec: "/bin/cp <kubectl><get><pods><-A><--watch><-o><json> <HOME=/home><KUBECONFIG=/state/dock/kubeconfig>",
		},
		"named": {
			args: []string{"--name", "other", "apply", "-f", "-"},
			exec: "/bin/cp <kubectl><apply><-f><-> <HOME=/home><KUBECONFIG=/state/other/kubeconfig>",
		},
		"by environment": {
			env:  []string{"OPDOCK_CLUSTER=other"},
			args: []string{"get", "ns"},
			exec: "/bin/cp <kubectl><get><ns> <HOME=/home><OPDOCK_CLUSTER=other><KUBECONFIG=/state/other/kubeconfig>",
		},
		"another KUBECONFIG in the environment": {
			env:  []string{"KUBECONFIG=/work"},
			args: []string{"get", "ns"},
			exec: "/bin/cp <kubectl><get><ns> <HOME=/home><KUBECONFIG=/state/dock/kubeconfig>",
		},
		"behind a lens": {
			env:  []string{"OPDOCK_KUBECONFIG=/lens"},
			args: []string{"get", "ns"},
			exec: "/bin/cp <kubectl><get><ns> <HOME=/home><OPDOCK_KUBECONFIG=/lens><KUBECONFIG=/lens>",
		},
		"behind a lens, but another cluster": {
			env:  []string{"OPDOCK_KUBECONFIG=/lens"},
			args: []string{"--name", "other", "get", "ns"},
			exec: "/bin/cp <kubectl><get><ns> <HOME=/home><OPDOCK_KUBECONFIG=/lens><KUBECONFIG=/state/other/kubeconfig>",
		},
		"own context": {
			env:  []string{"KUBECONFIG=/work"},
			args: []string{"get", "ns", "--context", "kind"},
			exec: "/bin/cp <kubectl><get><ns><--context><kind> <HOME=/home><KUBECONFIG=/work>",
		},
		"nothing running, nothing needed": {
			args: []string{"--name", "who", "help"},
			exec: "/bin/cp <kubectl><help> <HOME=/home>",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(&clitest.FakeDock{Binary: "/bin/cp", Clusters: clitest.Clusters(clitest.Alive, other)})
			s.Env = append([]string{"HOME=/home"}, test.env...)
			code, screen := s.Screen(t.Context(), append([]string{"kubectl"}, test.args...)...)
			clitest.ExpectCode(t, code, cmdutil.ExitOK)
			clitest.ExpectSame(t, "exec", s.Execs, []string{test.exec})
			if s.OutText.Len()+s.ErrText.Len() > 0 {
				t.Errorf("only kubectl may say something, but got:\n%s", screen)
			}
		})
	}
}

func TestKubectlInATrace(t *testing.T) {
	dir := t.TempDir()
	lens := filepath.Join(dir, "kubeconfig")
	other := clitest.Alive
	other.Name = "other"
	for name, test := range map[string]struct {
		traced, cluster string
		want, note      string
	}{
		"the traced cluster": {"other", "other", lens, ""},
		"another cluster":    {"other", "dock", "/state/dock/kubeconfig", "! These requests are not traced: opdock trace runs on other, and --name selects cluster \"dock\".\n"},
		"not of Opdock":      {"https://example.com", "dock", "/state/dock/kubeconfig", "! These requests are not traced: opdock trace runs on https://example.com, and --name selects cluster \"dock\".\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := cmdutil.NoteTraced(dir, test.traced); err != nil {
				t.Fatal(err)
			}
			s := newConsole(&clitest.FakeDock{Binary: "/bin/cp", Clusters: clitest.Clusters(clitest.Alive, other)})
			s.Env = []string{"OPDOCK_KUBECONFIG=" + lens}
			s.Screen(t.Context(), "kubectl", "--name", test.cluster, "get", "ns")
			clitest.ExpectSame(t, "exec", s.Execs, []string{"/bin/cp <kubectl><get><ns> <OPDOCK_KUBECONFIG=" + lens + "><KUBECONFIG=" + test.want + ">"})
			clitest.ExpectSame(t, "note", []string{s.ErrText.String()}, []string{test.note})
		})
	}
}

func TestWithKubeconfigLeavesItsInputAlone(t *testing.T) {
	env := []string{"KUBECONFIG=/work", "HOME=/home"}
	clitest.ExpectSame(t, "new", withKubeconfig(env, "/dock"), []string{"HOME=/home", "KUBECONFIG=/dock"})
	clitest.ExpectSame(t, "old", env, []string{"KUBECONFIG=/work", "HOME=/home"})
}

func TestKubectlWithoutItsCluster(t *testing.T) {
	for name, args := range map[string][]string{
		"dead":          {"kubectl", "--name", "lost", "get", "nodes"},
		"stopped":       {"kubectl", "--name", "old", "get", "nodes"},
		"never-started": {"kubectl", "get", "nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(&clitest.FakeDock{Binary: "/bin/cp", Clusters: clitest.Clusters(clitest.Dead, clitest.Stopped)})
			code, screen := s.Screen(t.Context(), args...)
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			golden.Compare(t, "kubectl/"+name, screen)
			clitest.ExpectSame(t, "exec", s.Execs, nil)
		})
	}
}

func TestKubectlCannotBeRun(t *testing.T) {
	s := newConsole(&clitest.FakeDock{Binary: "/bin/cp", Clusters: clitest.Clusters(clitest.Alive)})
	s.Exec = func(string, []string, []string) error { return errors.New("permission denied") }
	code, screen := s.Screen(t.Context(), "kubectl", "get", "nodes")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	golden.Compare(t, "kubectl/exec-fails", screen)
}

func TestKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("kind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"admin":           {nil, "kind: Config\n"},
		"service account": {[]string{"--as", "system:serviceaccount:shop:operator"}, "system:serviceaccount:shop:operator \n"},
		"user and groups": {[]string{"--as", "jane", "--as-group", "a,b", "--as-group=c"}, "jane <a,b><c>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(nil)
			s.Dock.Open = func(name string) (target.Running, error) {
				return &clitest.FakeCluster{Dock: s.Fake, Name: name, File: file}, nil
			}
			code, _ := s.Screen(t.Context(), append([]string{"kubeconfig"}, test.args...)...)
			clitest.ExpectCode(t, code, cmdutil.ExitOK)
			if got := s.OutText.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if s.ErrText.Len() > 0 {
				t.Errorf("unexpected: %s", s.ErrText)
			}
		})
	}
}

func TestKubeconfigOfAClusterThatDoesNotRun(t *testing.T) {
	s := newConsole(&clitest.FakeDock{Clusters: clitest.Clusters(clitest.Stopped)})
	code, _ := s.Screen(t.Context(), "kubeconfig", "--name", "old")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	if s.OutText.Len() > 0 {
		t.Errorf("unexpected: %s", s.OutText)
	}
}
