// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/filewrite"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/testenv"
)

// shipFiles are a project whose operator has too many rights, and lacks one.
var shipFiles = map[string]string{
	"go.mod": "module example.com/ship\n",
	"config/crd/bases/frigates.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: frigates.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Frigate, plural: frigates}
  versions: [{name: v1}]
`,
	"config/manager/manager.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: controller-manager, namespace: ship-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: controller-manager, namespace: ship-system}
spec:
  template:
    spec:
      serviceAccountName: controller-manager
      containers: [{name: manager}]
`,
	"config/rbac/role.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager-role}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: ["*"]}
- {apiGroups: [""], resources: [secrets], verbs: [get, list]}
- {apiGroups: [sea.example.com], resources: [frigates], verbs: [get, list, watch, update]}
- {apiGroups: [sea.example.com], resources: [frigates/status], verbs: [patch]}
`,
	"config/rbac/leader.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader-election-role, namespace: ship-system}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, create, update]}
`,
	"config/rbac/bindings.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager-role}
subjects: [{kind: ServiceAccount, name: controller-manager, namespace: ship-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader-election-rolebinding, namespace: ship-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader-election-role}
subjects: [{kind: ServiceAccount, name: controller-manager, namespace: ship-system}]
`,
	"internal/controller/frigate.go": `package controller

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=*
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list
// +kubebuilder:rbac:groups=sea.example.com,resources=frigates,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=sea.example.com,resources=frigates/status,verbs=patch

// Reconcile sails.
func Reconcile() {}
`,
}

const identity = "system:serviceaccount:ship-system:controller-manager"

// sailing is what the operator did: it reconciled a Frigate, wrote its Deployment and status, and was not allowed to patch a
// Service.
func sailing() []lens.Event {
	at := func(resource, namespace, name string) lens.Resource {
		resource, subresource, _ := strings.Cut(resource, "/")
		resource, group, _ := strings.Cut(resource, ".")
		return lens.Resource{Group: group, Version: "v1", Resource: resource, Subresource: subresource, Namespace: namespace, Name: name}
	}
	const frigates, victory = "frigates.sea.example.com", "victory"
	owner := lens.Implied{Verb: "update", Resource: at(frigates+"/finalizers", "default", victory), Because: "Deployment victory refers to its owner with blockOwnerDeletion"}
	created := lens.Implied{Verb: "create", Resource: at("deployments.apps", "default", ""), Because: "this apply created the object"}
	return []lens.Event{
		{Process: &lens.Process{Started: true, Identity: identity, Instrumented: true}},
		{Request: &lens.Request{ID: 1, Verb: "get", Path: "/apis", Status: 200}},
		{Request: &lens.Request{ID: 2, Verb: "watch", Resource: at(frigates, "", ""), Status: 200, Open: true}},
		{Request: &lens.Request{ID: 3, Verb: "list", Resource: at("deployments.apps", "", ""), Status: 200}},
		{Request: &lens.Request{ID: 4, Verb: "watch", Resource: at("deployments.apps", "", ""), Status: 200, Open: true}},
		{Delivery: &lens.Delivery{
			Watch: 2, Resource: at(frigates, "", ""), Type: "ADDED",
			Object: &lens.Object{Group: "sea.example.com", Version: "v1", Kind: "Frigate", Namespace: "default", Name: victory},
		}},
		{Reconcile: &lens.Reconcile{ID: 12, Controller: "frigate", Kind: "Frigate", Namespace: "default", Name: victory}},
		{Read: &lens.Read{Reconcile: 12, Group: "sea.example.com", Version: "v1", Kind: "Frigate", Namespace: "default", Name: victory}},
		{Request: &lens.Request{ID: 5, Verb: "apply", Resource: at("deployments.apps", "default", victory), Reconcile: 12, Status: 201, Implies: []lens.Implied{owner, created}}},
		{Request: &lens.Request{ID: 6, Verb: "patch", Resource: at("services", "default", victory), Reconcile: 12, Status: 403, Reason: "Forbidden"}},
		{Request: &lens.Request{ID: 7, Verb: "patch", Resource: at(frigates+"/status", "default", victory), Reconcile: 12, Status: 200}},
		{Request: &lens.Request{ID: 8, Verb: "get", Resource: at("secrets", "ship-system", "credentials"), Status: 200}},
		{Request: &lens.Request{ID: 9, Verb: "update", Resource: at("leases.coordination.k8s.io", "ship-system", "ship-lock"), Status: 200}},
		{Request: &lens.Request{ID: 2, Verb: "watch", Resource: at(frigates, "", ""), Status: 200}},
		{Request: &lens.Request{ID: 4, Verb: "watch", Resource: at("deployments.apps", "", ""), Status: 200}},
	}
}

// record writes events to a recording.
func record(t *testing.T, path, project string, events []lens.Event) string {
	t.Helper()
	proxy, err := lens.Start(t.Context(), lens.Options{Upstream: &rest.Config{Host: "https://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	began := clitest.Noon.Add(-10 * time.Minute)
	recording, err := lens.Record(proxy.Stream(), path, lens.Header{Began: began, Project: project, Identity: identity}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, event := range events {
		event.At = began.Add(time.Duration(i) * 10 * time.Second)
		proxy.Note(event)
	}
	if err := errors.Join(proxy.Close(), recording.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// screen runs the verb, and hides where the files are.
func screen(t *testing.T, s *clitest.Console, dir string, args ...string) (code int, text string) {
	t.Helper()
	code, text = s.Screen(t.Context(), append([]string{"rbac"}, args...)...)
	return code, strings.ReplaceAll(text, dir, "DIR")
}

func TestRBAC(t *testing.T) {
	dir := testenv.Dir(t, shipFiles)
	recording := record(t, filepath.Join(dir, "sailing.jsonl"), "ship", sailing())
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"text":            {nil, cmdutil.ExitOK},
		"explain":         {[]string{"--explain"}, cmdutil.ExitOK},
		"check":           {[]string{"--check", "--against", "markers"}, cmdutil.ExitError},
		"against-nothing": {[]string{"--against", "none"}, cmdutil.ExitOK},
		"against-chart":   {[]string{"--against", "chart"}, cmdutil.ExitError},
		"yaml":            {[]string{"-o", "yaml"}, cmdutil.ExitOK},
		"markers":         {[]string{"-o", "markers", "--include-refused"}, cmdutil.ExitOK},
		"json":            {[]string{"-o", "json"}, cmdutil.ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := screen(t, newConsole(nil), dir, append([]string{recording, "--dir", dir}, test.args...)...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, name, text)
		})
	}
}

// TestRecordingOfAnotherProject is noted, because its rights say nothing about this project.
func TestRecordingOfAnotherProject(t *testing.T) {
	dir := testenv.Dir(t, shipFiles)
	own, other := record(t, filepath.Join(t.TempDir(), "own.jsonl"), "ship", sailing()), record(t, filepath.Join(t.TempDir(), "other.jsonl"), "raft", sailing())
	code, text := screen(t, newConsole(nil), dir, own, other, "--dir", dir)
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	if want := "! recording other.jsonl is of the project raft, not of ship\n"; !strings.Contains(text, want) || strings.Contains(text, "own.jsonl is of") {
		t.Errorf("got\n%swant %s", text, want)
	}
}

// TestWrongFileIsReportedBeforeTheRun names a recording that does not exist, where no cluster can be started.
func TestWrongFileIsReportedBeforeTheRun(t *testing.T) {
	dir, home := testenv.Dir(t, shipFiles), t.TempDir()
	s := newConsole(nil)
	s.Dock.Home = func() string { return home }
	s.Dock.FindBinary = func() (string, error) { return filepath.Join(home, "no-control-plane"), nil }
	code, text := screen(t, s, dir, filepath.Join(dir, "nothing.jsonl"), "--record", "--dir", dir)
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	if !strings.Contains(text, "nothing.jsonl: no such file") {
		t.Errorf("got\n%s", text)
	}
}

func TestRecordingsOfTheProjectAreFound(t *testing.T) {
	dir, home := testenv.Dir(t, shipFiles), t.TempDir()
	s := newConsole(nil)
	s.Dock.Home = func() string { return home }
	code, text := screen(t, s, dir, "--dir", dir)
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	golden.Compare(t, "no-recordings", text)

	for name, project := range map[string]string{"dev/ship/recordings/1.jsonl": "ship", "dev/elsewhere/recordings/2.jsonl": "ship", "dev/ship/recordings/3.jsonl": "other", "dev/namesake/recordings/4.jsonl": "ship"} {
		record(t, filepath.Join(home, name), project, sailing())
	}
	if err := os.WriteFile(filepath.Join(home, "dev/namesake/project"), []byte("/elsewhere/ship\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = newConsole(nil)
	s.Dock.Home = func() string { return home }
	code, text = screen(t, s, dir, "--dir", dir)
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	if want := "ship: 18 requests as " + identity + " in 2 recordings\n"; !strings.Contains(text, want) {
		t.Errorf("got\n%swant %s", text, want)
	}
}

func TestWithoutAProject(t *testing.T) {
	dir := t.TempDir()
	recording := record(t, filepath.Join(dir, "sailing.jsonl"), "", sailing())
	code, text := screen(t, newConsole(nil), dir, recording, "--dir", dir, "-o", "markers")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	golden.Compare(t, "no-project", text)
	code, text = screen(t, newConsole(nil), dir, recording, "--dir", dir, "-o", "markers", "--check")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	if !strings.Contains(text, "--check found no rights to compare with") {
		t.Errorf("it says\n%s", text)
	}
}

func TestBadInput(t *testing.T) {
	dir := testenv.Dir(t, shipFiles)
	for name, args := range map[string][]string{
		"not-a-recording": {filepath.Join(dir, "go.mod"), "--dir", dir},
		"no-such-file":    {filepath.Join(dir, "nothing.jsonl"), "--dir", dir},
		"format":          {"-o", "table"},
		"write-and-check": {"--write", "--check"},
		"check-nothing":   {"--check", "--against", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := screen(t, newConsole(nil), dir, args...)
			if code == cmdutil.ExitOK {
				t.Error("that is no success")
			}
			golden.Compare(t, "bad/"+name, text)
		})
	}
}

// generator stands in for generate.Run, and writes the role as a part of whatever is written.
func generator(t *testing.T, dir string, stale bool, fails error) func(context.Context, generate.Options) (*generate.Result, error) {
	t.Helper()
	return func(ctx context.Context, o generate.Options) (*generate.Result, error) {
		result := &generate.Result{Dir: dir}
		const role = "config/rbac/role.yaml"
		changes := []generate.Change{{Path: role, Kind: generate.Changed}}
		switch {
		case o.Check && stale:
			result.Changes = changes
		case o.Check:
		default:
			before, err := os.ReadFile(filepath.Join(dir, role))
			if err != nil {
				return nil, err
			}
			if err := filewrite.Apply(ctx, dir, []filewrite.Change{{Path: role, Content: []byte("generated\n"), Before: before, Mode: 0o600}}); err != nil {
				return nil, err
			}
			result.Changes = changes
			return result, fails
		}
		return result, nil
	}
}

func TestWrite(t *testing.T) {
	dir := testenv.Dir(t, shipFiles)
	recording := record(t, filepath.Join(dir, "sailing.jsonl"), "ship", sailing())
	s := newConsole(nil)
	s.Generate = generator(t, dir, false, nil)
	code, text := screen(t, s, dir, recording, "--dir", dir, "--write")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	golden.Compare(t, "write", text)
	source, err := os.ReadFile(filepath.Join(dir, "internal/controller/frigate.go"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "write-frigate.go", string(source))
	role, err := os.ReadFile(filepath.Join(dir, "config/rbac/role.yaml"))
	if err != nil || string(role) != "generated\n" {
		t.Errorf("got role %q, %v", role, err)
	}
}

// TestWriteKnowsOtherRoles has markers that need not ask for what the role for leader election grants.
func TestWriteKnowsOtherRoles(t *testing.T) {
	dir := testenv.Dir(t, shipFiles)
	recording := record(t, filepath.Join(dir, "sailing.jsonl"), "ship", sailing())
	s := newConsole(nil)
	s.Generate = generator(t, dir, false, nil)
	code, _ := s.Screen(t.Context(), "rbac", recording, "--dir", dir, "--write", "--against", "markers")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	source, err := os.ReadFile(filepath.Join(dir, "internal/controller/frigate.go"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "write-frigate.go", string(source))
}

func TestWriteChangesNothingIfItFails(t *testing.T) {
	for name, test := range map[string]struct {
		stale bool
		fails error
	}{
		"stale":  {true, nil},
		"failed": {false, errors.New("the disk is full")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testenv.Dir(t, shipFiles)
			recording := record(t, filepath.Join(t.TempDir(), "sailing.jsonl"), "ship", sailing())
			s := newConsole(nil)
			s.Generate = generator(t, dir, test.stale, test.fails)
			code, _ := s.Screen(t.Context(), "rbac", recording, "--dir", dir, "--write")
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			golden.Compare(t, "write-"+name, s.ErrText.String())
			for file, want := range shipFiles {
				if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
					t.Errorf("%s has changed: %q, %v", file, got, err)
				}
			}
		})
	}
}
