// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/librarylog"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/testenv"
)

// projectFixture copies a project of package project's testdata, so that it can be changed.
func projectFixture(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "project", "testdata", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeFile replaces a file of a project.
func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	testenv.WriteFile(t, path, content)
}

// newProjectConsole is a user in whose projects everything is generated.
func newProjectConsole(dock *clitest.FakeDock) *clitest.Console {
	s := newConsole(dock)
	s.Generate = func(context.Context, generate.Options) (*generate.Result, error) {
		return &generate.Result{Skipped: true}, nil
	}
	return s
}

func expectScreen(t *testing.T, screen string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(screen, part) {
			t.Errorf("%q is not on the screen:\n%s", part, screen)
		}
	}
}

func TestProjectVerbsWithBadInput(t *testing.T) {
	single := projectFixture(t, "single")
	invalid := projectFixture(t, "single")
	writeFile(t, invalid, "config/rbac/role.yaml", "kind: ClusterRole\nmetadata:\n\tname: a\n")
	writeFile(t, invalid, "config/crd/bases/sea.example.com_ships.yaml", "kind: CustomResourceDefinition\nmetadata: [\n")
	incomplete := projectFixture(t, "single")
	if err := os.RemoveAll(filepath.Join(incomplete, "config/crd/bases")); err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	writeFile(t, module, "go.mod", "module example.com/a\n\ngo 1.26.0\n")
	twoMains := t.TempDir()
	writeFile(t, twoMains, "go.mod", "module example.com/a\n\ngo 1.26.0\n")
	writeFile(t, twoMains, "one/main.go", "package main\n\nfunc main() {}\n")
	writeFile(t, twoMains, "two/main.go", "package main\n\nfunc main() {}\n")
	unreachable := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, filepath.Dir(unreachable), "kubeconfig", `{apiVersion: v1, kind: Config, current-context: a,
contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a}],
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]}`)

	for name, test := range map[string]struct {
		args     []string
		code     int
		expected []string
	}{
		"no project":           {[]string{"install", "--dir", t.TempDir()}, cmdutil.ExitUsage, []string{"no project found in", "--dir DIR", "opdock init"}},
		"no project to build":  {[]string{"build", "--dir", t.TempDir()}, cmdutil.ExitUsage, []string{"no project found in", "opdock init"}},
		"no directory":         {[]string{"deploy", "--dir", "/nowhere"}, cmdutil.ExitUsage, []string{"/nowhere: the directory does not exist", "--dir DIR"}},
		"no CRDs":              {[]string{"install", "--dir", module}, cmdutil.ExitError, []string{"the project has no CRDs", "config, deploy", "opdock generate"}},
		"no manifests":         {[]string{"deploy", "--dir", module}, cmdutil.ExitError, []string{"nothing to deploy", "opdock install", "opdock dev"}},
		"only kinds":           {[]string{"deploy", "--dir", projectFixture(t, "plain")}, cmdutil.ExitError, []string{"no Deployment, StatefulSet or DaemonSet"}},
		"invalid CRD":          {[]string{"install", "--dir", invalid}, cmdutil.ExitError, []string{"config/crd/bases/sea.example.com_ships.yaml:2: "}},
		"not generated":        {[]string{"install", "--dir", incomplete}, cmdutil.ExitError, []string{"config/crd/bases/sea.example.com_ships.yaml does not exist", "opdock generate"}},
		"invalid YAML":         {[]string{"deploy", "--dir", invalid}, cmdutil.ExitError, []string{"building config/default: config/"}},
		"two mains":            {[]string{"build", "--dir", twoMains}, cmdutil.ExitUsage, []string{"2 main packages: ./one, ./two", "build --main ./one"}},
		"not a main":           {[]string{"build", "--dir", twoMains, "--main", "three"}, cmdutil.ExitError, []string{"three is not a main package", "./one, ./two"}},
		"no main":              {[]string{"build", "--dir", module}, cmdutil.ExitError, []string{"has no main package"}},
		"image missing":        {[]string{"deploy", "--dir", single, "--kubeconfig", unreachable}, cmdutil.ExitUsage, []string{"--image is required", "controller:latest", "opdock build --image"}},
		"image wrong":          {[]string{"deploy", "--dir", single, "--image", "Not An Image"}, cmdutil.ExitUsage, []string{"--image cannot be"}},
		"image with a digest":  {[]string{"build", "--dir", single, "--image", "a@sha256:" + strings.Repeat("a", 64)}, cmdutil.ExitUsage, []string{"digest"}},
		"push without a name":  {[]string{"build", "--dir", single, "--push"}, cmdutil.ExitUsage, []string{"--push needs --image"}},
		"platform":             {[]string{"build", "--dir", single, "--platform", "amd64"}, cmdutil.ExitUsage, []string{`"amd64" is not a platform`}},
		"compressed":           {[]string{"build", "--dir", single, "--output", "a.tar.gz"}, cmdutil.ExitUsage, []string{"compressed"}},
		"folder would be lost": {[]string{"build", "--dir", single, "--output", single}, cmdutil.ExitError, []string{"do not belong to an image and would be lost", "--output"}},
		"unreachable":          {[]string{"install", "--dir", single, "--kubeconfig", unreachable}, cmdutil.ExitError, []string{"https://127.0.0.1:1 is not available", "check that the server is running"}},
		"no kubeconfig":        {[]string{"uninstall", "--dir", single, "--kubeconfig", "/nowhere"}, cmdutil.ExitError, []string{"the kubeconfig cannot be used"}},
		"not running":          {[]string{"uninstall", "--dir", single, "--name", "old"}, cmdutil.ExitError, []string{`cluster "old" is stopped`, "opdock up --name old"}},
		"nothing to undeploy":  {[]string{"undeploy", "--dir", single, "--name", "never"}, cmdutil.ExitError, []string{`cluster "never" was never started`}},
		"two clusters":         {[]string{"install", "--dir", single, "--name", "a", "--context", "b"}, cmdutil.ExitUsage, []string{"cannot be used with --kubeconfig or --context"}},
		"namespace":            {[]string{"deploy", "--dir", single, "--namespace", "A_B"}, cmdutil.ExitUsage, []string{"--namespace cannot be"}},
		"timeout":              {[]string{"undeploy", "--dir", single, "--timeout", "0s"}, cmdutil.ExitUsage, []string{"--timeout must be more than 0"}},
		"format":               {[]string{"install", "-o", "xml"}, cmdutil.ExitUsage, []string{"must be one of text, json, yaml"}},
		"argument":             {[]string{"install", "other"}, cmdutil.ExitUsage, []string{"install takes no arguments"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newProjectConsole(&clitest.FakeDock{Clusters: clitest.Clusters(clitest.Alive, clitest.Stopped)})
			code, screen := s.Screen(t.Context(), test.args...)
			clitest.ExpectCode(t, code, test.code)
			expectScreen(t, screen, test.expected...)
			if s.OutText.Len() > 0 {
				t.Errorf("an error belongs on standard error only:\n%s", screen)
			}
			if len(s.Fake.Started) > 0 {
				t.Error("a cluster was started")
			}
		})
	}
}

func TestManifestsAreYAMLWithoutACluster(t *testing.T) {
	single := projectFixture(t, "single")
	for verb, expected := range map[string][]string{
		"install":  {"---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"},
		"deploy":   {"---\napiVersion: v1\nkind: Namespace\n", "image: team/harbour:v7\n", "kind: ValidatingWebhookConfiguration\n"},
		"undeploy": {"kind: Deployment\n"},
	} {
		s := newProjectConsole(nil)
		args := []string{verb, "--dir", single, "-o", "yaml"}
		if verb == "deploy" {
			args = append(args, "--image", "team/harbour:v7")
		}
		code, screen := s.Screen(t.Context(), args...)
		clitest.ExpectCode(t, code, cmdutil.ExitOK)
		expectScreen(t, screen, expected...)
		if s.ErrText.Len() > 0 {
			t.Errorf("%s: there is more than manifests:\n%s", verb, s.ErrText)
		}
	}
}

func TestDryRunsStartNothing(t *testing.T) {
	s := newProjectConsole(&clitest.FakeDock{Clusters: clitest.Clusters(clitest.Stopped)})
	code, screen := s.Screen(t.Context(), "install", "--dir", projectFixture(t, "single"), "--name", "old", "--dry-run")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	expectScreen(t, screen, "WOULD BE", "ships.sea.example.com   unknown", `cluster "old" is not running`, "opdock up --name old")
	if len(s.Fake.Started) > 0 {
		t.Error("a cluster was started")
	}
}

// A server that cannot be started is enough to see what happens before.
func TestManifestsAreGeneratedFirst(t *testing.T) {
	noServer := errors.New("no server today")
	dock := &clitest.FakeDock{
		Binary: "/bin/opdock-controlplane",
		Start:  func(context.Context, cluster.Options) (target.Running, error) { return nil, noServer },
	}
	for name, test := range map[string]struct {
		project  string
		args     []string
		err      error
		expected *generate.Options // nil: nothing is generated
		screen   []string
	}{
		"markers":     {"single", nil, nil, &generate.Options{Only: []string{"deepcopy", "crd", "rbac", "webhook"}}, []string{"generated 3 files, 1 changed", "no server today"}},
		"dry run":     {"single", []string{"--dry-run"}, nil, &generate.Options{Check: true, Only: []string{"deepcopy"}}, []string{"1 file is stale", "opdock generate"}},
		"not wanted":  {"single", []string{"--no-generate"}, nil, nil, []string{"no server today"}},
		"own tools":   {"plain", nil, nil, nil, []string{"no server today"}},
		"no markers":  {"single", nil, generate.ErrNothing, &generate.Options{Only: []string{"deepcopy"}}, []string{"no server today"}},
		"wrong types": {"single", nil, &generate.Error{Problems: []generate.Problem{{File: "api/v1/a.go", Line: 7, Message: "no"}}}, &generate.Options{Only: []string{"deepcopy"}}, []string{"api/v1/a.go:7:1: no", "--no-generate"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(dock)
			var got *generate.Options
			s.Generate = func(_ context.Context, o generate.Options) (*generate.Result, error) {
				got = &o
				return &generate.Result{Files: 3, Changes: []generate.Change{{Path: "a", Kind: generate.Changed}}}, test.err
			}
			dir := projectFixture(t, test.project)
			_, screen := s.Screen(t.Context(), append([]string{"install", "--dir", dir}, test.args...)...)
			expectScreen(t, screen, test.screen...)
			switch {
			case (got == nil) != (test.expected == nil):
				t.Errorf("it was generated with %+v", got)
			case got != nil && (got.Check != test.expected.Check || got.Only[0] != test.expected.Only[0]):
				t.Errorf("it was generated with %+v", got)
			}
		})
	}
}

func TestOutcomesAreCounted(t *testing.T) {
	outcomes := []apply.Outcome{{Action: apply.Unchanged}, {Action: apply.Created}, {Action: apply.Created}}
	if got := count(outcomes); got != "2 created, 1 unchanged" {
		t.Error(got)
	}
}

func TestOnlyAPersonCanSayYes(t *testing.T) {
	for typed, expected := range map[string]bool{"y": true, "Y": true, "n": false, "\r": false, "\x03": false} {
		s := newConsole(nil)
		keys := make(chan string, 1)
		keys <- typed
		released := false
		s.ErrWidth = 80
		s.Keys = func() (<-chan string, func(), error) { return keys, func() { released = true }, nil }
		if (verbs{s.App}).confirm(t.Context(), "There is something.") != expected {
			t.Errorf("%q is taken for %v", typed, !expected)
		}
		if !released {
			t.Error("the terminal was not given back")
		}
	}
	s := newConsole(nil)
	if (verbs{s.App}).confirm(t.Context(), "There is something.") || s.ErrText.Len() > 0 {
		t.Error("it was confirmed without a question")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	s.ErrWidth = 80
	s.Keys = func() (<-chan string, func(), error) { return nil, func() {}, nil }
	if (verbs{s.App}).confirm(ended, "There is something.") {
		t.Error("the end of the program is taken for a yes")
	}
}

func TestFlagsOfProjectVerbsAreCompleted(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, filepath.Dir(kubeconfig), "kubeconfig",
		`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: b, context: {cluster: a}}, {name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]}`)
	const onlyFolders = ":16\n"
	for args, want := range map[string]string{
		"install --name ": "dock\nlost\n",
		"deploy --kubeconfig " + kubeconfig + " --context ": "a\nb\n:4\n",
		"undeploy -o ": "text\njson\nyaml\n:4\n",
		"build --dir " + projectFixture(t, "sdk") + " --main ": "./cmd/manager\n./cmd/tool\n:4\n",
		"build --platform linux/arm":                           "linux/amd64\nlinux/arm64\n",
		"install --dir ":                                       onlyFolders,
		"deploy --image ":                                      ":4\n",
	} {
		s := newConsole(&clitest.FakeDock{Clusters: clitest.Clusters(clitest.Alive, clitest.Dead)})
		s.Screen(t.Context(), append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if got := s.OutText.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q first", args, got, want)
		}
	}
}

// What libraries say about their requests is nothing for a user, and errors are told anyway.
func TestLibrariesAreSilentAboutProjects(t *testing.T) {
	librarylog.To(io.MultiWriter()) // which takes everything, as a terminal would
	t.Cleanup(librarylog.Discard)
	user := newProjectConsole(&clitest.FakeDock{})
	user.Screen(t.Context(), "uninstall", "--dir", projectFixture(t, "single"))
	if librarylog.Writer() != io.Discard {
		t.Error("they write to the user's terminal")
	}
}
