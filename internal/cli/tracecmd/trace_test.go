// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tracecmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/testenv"
)

func newConsole() *clitest.Console { return clitest.NewConsole(&clitest.FakeDock{}, NewTrace) }

func TestTraceUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"trace":                                           "there is no program to run",
		"trace ./manager":                                 `the program goes after --`,
		"trace --open x.jsonl -- ls":                      "--open cannot be used with a program to run",
		"trace --open x.jsonl --as a:b":                   "--open cannot be used with --as",
		"trace --show everything -- ls":                   `--show must be writes, requests or all, not "everything"`,
		"trace --as operator -- ls":                       "--as must be NAMESPACE:SERVICEACCOUNT or admin",
		"trace --as shop:operator:more -- ls":             "--as must be NAMESPACE:SERVICEACCOUNT or admin",
		"trace --as Shop:operator -- ls":                  "--as must be NAMESPACE:SERVICEACCOUNT or admin",
		"trace --verb post -- ls":                         "--verb post is not known",
		"trace --timeout 0s -- ls":                        "--timeout must be more than 0",
		"trace --context x --name y -- ls":                "--name applies to a cluster of Opdock",
		"trace --open x.jsonl --kubeconfig ./kc":          "--open cannot be used with --as",
		"trace -- /no/such/program":                       "cannot run /no/such/program: ",
		"trace --page -- ls":                              "--page needs --open FILE",
		"trace --open x.jsonl --page -q":                  "--page shows the whole recording and cannot be used with filters: filter on the page",
		"trace --open x.jsonl --page --verb get":          "filter on the page",
		"trace --open x --page-address 127.0.0.1:0":       "--page-address needs --page",
		"trace --open x --page --page-address 0.0.0.0:80": "the page is served on loopback only",
	} {
		code, screen := newConsole().Screen(t.Context(), strings.Fields(line)...)
		if code != cmdutil.ExitUsage || !strings.Contains(screen, want) {
			t.Errorf("%s: exit code %d\n%s", line, code, screen)
		}
	}
}

func TestTraceOpensRecordings(t *testing.T) {
	t.Setenv("TZ", "UTC")
	const recording = "testdata/recording.jsonl"
	for name, args := range map[string][]string{
		"writes":   {"trace", "--open", recording},
		"all":      {"trace", "--open", recording, "--show", "all"},
		"filtered": {"trace", "--open", recording, "--show", "requests", "--resource", "configmaps", "-n", "shop"},
		"quiet":    {"trace", "--open", recording, "--quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			code, screen := newConsole().Screen(t.Context(), args...)
			clitest.ExpectCode(t, code, cmdutil.ExitOK)
			golden.Compare(t, name, screen)
		})
	}
}

// A recording is served until the user interrupts it.
// full is a file on a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestTraceCannotPrintARecording(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		s := newConsole()
		s.Out = full{}
		code, screen := s.Screen(t.Context(), "trace", "--open", "testdata/recording.jsonl", "-o", format)
		if code == 0 || !strings.Contains(screen, "no space left on device") {
			t.Errorf("%s: the code is %d:\n%s", format, code, screen)
		}
	}
}

func TestTraceFiltersThatMatchNothing(t *testing.T) {
	const note = "No line of the recording matches the filters"
	for _, test := range []struct {
		resource string
		want     bool
	}{{"configmap", true}, {"configmaps", false}} {
		_, screen := newConsole().Screen(t.Context(), "trace", "--open", "testdata/recording.jsonl", "--resource", test.resource)
		if strings.Contains(screen, note) != test.want {
			t.Errorf("%s:\n%s", test.resource, screen)
		}
	}
}

func TestTraceServesARecording(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, screen := newConsole().Screen(ctx, "trace", "--open", "testdata/recording.jsonl", "--page")
	if code != cmdutil.ExitOK || !strings.Contains(screen, "Page: http://127.0.0.1:") || !strings.Contains(screen, "the page does not show which rights are granted") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

func TestTraceOfOtherFiles(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "other.jsonl")
	if err := os.WriteFile(other, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{other: "this is not a recording", filepath.Join(t.TempDir(), "missing"): "no such file"} {
		code, screen := newConsole().Screen(t.Context(), "trace", "--open", path)
		if code != cmdutil.ExitError || !strings.Contains(screen, want) {
			t.Errorf("%s: exit code %d\n%s", path, code, screen)
		}
	}
}

// opdock kubectl --name needs it in a traced command.
func TestTraceNotesWhichClusterIsTraced(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	testenv.WriteFile(t, kubeconfig, "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n")
	s := clitest.NewConsole(&clitest.FakeDock{Clusters: clitest.Clusters(clitest.Alive)}, NewTrace)
	s.Dock.Open = func(name string) (target.Running, error) {
		return &clitest.FakeCluster{Dock: s.Fake, Name: name, File: kubeconfig}, nil
	}
	noted := t.TempDir()
	s.Env = os.Environ()
	_, screen := s.Screen(t.Context(), "trace", "--name", "dock", "--as", "admin", "--save", filepath.Join(t.TempDir(), "recording.jsonl"), "--",
		"sh", "-c", `cp "${OPDOCK_KUBECONFIG%/*}/"* "$0"`, noted)
	if got := cmdutil.TracedCluster(filepath.Join(noted, "kubeconfig")); got != "dock" {
		t.Errorf("noted %q:\n%s", got, screen)
	}
}
