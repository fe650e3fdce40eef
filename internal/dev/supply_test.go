// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/dev/mounts"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/testenv"
)

// terminal is a screen that several goroutines use.
type terminal struct {
	Screen

	mu    sync.Mutex
	texts []string
}

func (s *terminal) Say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
}
func (*terminal) Busy(string) {}
func (*terminal) Log(string)  {}

// scriptSession is a session on the cluster that tests share, with a script in place of a built operator.
func scriptSession(t *testing.T, files map[string]string, script string) *Session {
	t.Helper()
	testenv.ControlPlane(t)
	dir, state := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{"go.mod": "module example.com/mine\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"})
	write(t, dir, files)
	found, err := project.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	claim, err := NewClaim(state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Release)
	shared := clustertest.Shared(t)
	kubeconfig, err := os.ReadFile(shared.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{
		Project: found, Main: ".", Env: os.Environ(), StateDir: state, Claim: claim, Namespace: "default", Screen: &terminal{}, Observer: unobserved{},
		Cluster: Cluster{Config: rest.CopyConfig(shared.Config()), Kubeconfig: kubeconfig, CallsBack: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.builder.output, s.builder.built = filepath.Join(dir, "operator.sh"), digest{1}
	if err := os.WriteFile(s.builder.output, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// An operator that exits because the cluster lacks a kind gets its CRD, and starts again in the same round. If it exits again,
// or nothing can be supplied, the round is over.
func TestRestartWithACRD(t *testing.T) {
	const (
		started = "restart: started"
		exited  = "run: the operator exited with status "
	)
	for name, test := range map[string]struct {
		has    bool // the project has the CRD
		serves bool // the operator has webhooks, which it never serves
		second string
		steps  []string
		state  string // empty if the operator has crashed
	}{
		"works":                {true, false, "echo Starting workers; exec sleep 600", []string{started, started}, string(reconciling)},
		"exits-again":          {true, false, "LACKS", []string{started, started, exited + "1"}, ""},
		"before-its-webhooks":  {true, true, "exit 2", []string{started, started, exited + "2"}, ""},
		"nothing":              {false, false, "exit 2", []string{started, exited + "1"}, ""},
		"nothing-for-webhooks": {false, true, "exit 2", []string{started, exited + "1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			group := name + ".supplied.io" // each case finds a cluster without its kind
			beacons := strings.NewReplacer("lamps", "beacons", "Lamp", "Beacon", "other.io", group,
				"storage: true}", "storage: true, schema: {openAPIV3Schema: {type: object}}}").Replace(lamps)
			files := map[string]string{}
			if test.has {
				files["third-party/beacon.yaml"] = beacons
			}
			lacks := `echo 'no matches for kind "Beacon" in version "` + group + `/v1"'; exit 1`
			s := scriptSession(t, files, "if [ -f once ]; then "+strings.ReplaceAll(test.second, "LACKS", lacks)+"; fi; touch once; "+lacks)
			if test.serves {
				s.manifests.webhooks = []*unstructured.Unstructured{object(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: supplied}}")}
				s.plan.webhookPort = s.ports.webhooks
			}
			crd := object(t, beacons)
			s.deleteLater(t, crd)
			expectRound(t, s.do(t.Context(), workRestart, Round{}), test.steps, test.state)
			if s.exists(t, crd) != test.has {
				t.Errorf("the cluster has the CRD: %v", !test.has)
			}
		})
	}
}

// deleteLater deletes an object at the end of the test, if it is there.
func (s *Session) deleteLater(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := client.IgnoreNotFound(s.applier.server.Delete(ctx, object.DeepCopy())); err != nil {
			t.Error(err)
		}
	})
}

// An operator may ask for a kind only when it reconciles, when all its controllers run.
func TestKindThatAReconcileLacks(t *testing.T) {
	probe := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer probe.Close()
	for name, test := range map[string]struct {
		has   bool
		log   string // when it starts
		state stage
	}{
		"found":     {true, "Starting workers", reconciling},
		"not-found": {false, "Starting workers", reconciling},
		"silent":    {false, "Hello", probed}, // it does not log that its workers start
	} {
		t.Run(name, func(t *testing.T) {
			has, group := test.has, name+".reconciled.io"
			beacons := strings.NewReplacer("lamps", "beacons", "Lamp", "Beacon", "other.io", group,
				"storage: true}", "storage: true, schema: {openAPIV3Schema: {type: object}}}").Replace(lamps)
			files, steps := map[string]string{}, []string(nil)
			if has {
				files["third-party/beacon.yaml"], steps = beacons, []string{"restart: restarted"}
			}
			sample := filepath.Join(t.TempDir(), "sample")
			if err := syscall.Mkfifo(sample, 0o600); err != nil {
				t.Fatal(err)
			}
			s := scriptSession(t, files, "echo "+test.log+"; if [ ! -f once ]; then touch once; read sample <"+sample+
				`; echo 'no matches for kind "Beacon" in version "`+group+`/v1"'; fi; exec sleep 600`)
			screen := &terminal{}
			s.Screen, s.plan.probe = screen, probe.Listener.Addr().String()
			crd := object(t, beacons)
			s.deleteLater(t, crd)
			expectRound(t, s.do(t.Context(), workRestart, Round{}), []string{"restart: started"}, string(test.state))
			if err := os.WriteFile(sample, []byte("a\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			<-s.process.ready.lacks
			expectRound(t, s.do(t.Context(), workAwait, Round{}), steps, string(test.state))
			if s.exists(t, crd) != has {
				t.Errorf("the cluster has the CRD: %v", !has)
			}
			screen.mu.Lock()
			defer screen.mu.Unlock()
			if said := strings.Contains(strings.Join(screen.texts, "\n"), "the cluster does not have kind Beacon of "+group); said == has {
				t.Errorf("it said %q", screen.texts)
			}
		})
	}
}

// A controller that may not list what it watches waits silently: the operator runs, and even its probe may succeed.
func TestControllersWithoutRights(t *testing.T) {
	const denied = `echo 'Failed to watch *v1.Ship: ships.sea.io is forbidden: User "a" cannot list resource "ships" in API group "sea.io" at the cluster scope'`
	for name, test := range map[string]struct{ script, problem string }{
		"of all": {
			`echo 'Starting EventSource {"controller": "ship"}'; ` + denied,
			"1 controller has not started (ship): the operator is not allowed to list or watch what it needs",
		},
		"of some": {
			`echo 'Starting EventSource {"controller": "ship"}'; echo 'Starting EventSource {"controller": "crew"}'; echo 'Starting EventSource {"controller": "dock"}'
echo 'Starting workers {"controller": "crew"}'; ` + denied,
			"2 controllers have not started (dock, ship): the operator is not allowed to list or watch what it needs",
		},
		"of a reconcile": {`echo 'Starting EventSource {"controller": "ship"}'; ` + denied + `; echo 'Starting workers {"controller": "ship"}'`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptSession(t, nil, test.script+"; exec sleep 600")
			result := s.do(t.Context(), workRestart, Round{})
			var text string
			if result.round.Problem != nil {
				text = result.round.Problem.Text
			}
			if text != test.problem {
				t.Errorf("the problem is %q, the state %q", text, result.round.State)
			}
		})
	}
}

// An operator that exits because it reads only the in-cluster configuration starts again with one, in the same round.
func TestRestartAsAPod(t *testing.T) {
	s := scriptSession(t, nil, `if [ "$KUBERNETES_SERVICE_HOST" ]; then echo Starting workers; exec sleep 600; fi
echo unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined; exit 1`)
	s.Lens = true // which gives it a token
	steps, state := []string{"restart: started", "restart: started"}, string(reconciling)
	if err := mounts.Check(mounts.List{Dir: t.TempDir(), Files: []mounts.File{{Path: namespaceFile, Source: s.builder.output}}}); err != nil {
		t.Logf("it cannot have one here: %v", err)
		steps, state = []string{"restart: started", "run: the operator exited with status 1"}, ""
	}
	expectRound(t, s.do(t.Context(), workRestart, Round{}), steps, state)
}

// Code that is saved during a session may begin to read the name of its host. The manifests are not read again for that.
func TestCodeThatBeginsToReadTheHostname(t *testing.T) {
	s := scriptSession(t, nil, `echo "$HOSTNAME" > hostname; echo Starting workers; exec sleep 600`)
	s.Env = append(s.Env, "HOSTNAME=laptop")
	s.manifests.all = []*unstructured.Unstructured{object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: boat}, spec: {template: {spec: {containers: [{name: manager}]}}}}")}
	for _, code := range []struct{ main, want, step string }{
		{"package main\n\nfunc main() {}\n", "laptop\n", "restart: started"},
		{"package main\n\nimport \"os\"\n\nfunc main() { _, _ = os.Hostname() }\n", "boat\n", "restart: restarted"},
	} {
		write(t, s.Project.Dir, map[string]string{"main.go": code.main})
		expectRound(t, s.do(t.Context(), workRestart, Round{}), []string{code.step}, string(reconciling))
		if got, err := os.ReadFile(filepath.Join(s.Project.Dir, "hostname")); err != nil || string(got) != code.want {
			t.Errorf("the name of the host is %q, %v", got, err)
		}
	}
}

// An operator without a service account has all rights, and its recording says so.
func TestRecordingOfAnAdministrator(t *testing.T) {
	s := scriptSession(t, nil, "echo Starting workers; exec sleep 600")
	s.Lens = true
	expectRound(t, s.do(t.Context(), workRestart, Round{}), []string{"restart: started"}, string(reconciling))
	s.end()
	recordings, err := filepath.Glob(filepath.Join(s.StateDir, "recordings", "*.jsonl"))
	if err != nil || len(recordings) != 1 {
		t.Fatalf("the recordings are %q, %v", recordings, err)
	}
	file, err := os.Open(recordings[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	recorded, err := lens.ReadRecording(file, func(*lens.Event) error { return nil })
	if err != nil || recorded.Header.Identity != "administrator" {
		t.Errorf("it is the recording of %q, %v", recorded.Header.Identity, err)
	}
}

// An operator that has subcommands and is given none prints its help and exits.
func TestOperatorThatNeedsASubcommand(t *testing.T) {
	s := scriptSession(t, nil, "printf 'Available Commands:\\n  manager   Run it\\n\\nFlags:\\n'")
	screen := &rounds{}
	s.Screen = screen
	s.retry = time.NewTimer(time.Hour)
	defer s.retry.Stop()
	s.conclude(s.do(t.Context(), workFlags|workRestart, Round{}))
	if len(screen.rounds) != 1 || screen.rounds[0].Problem == nil || !strings.HasSuffix(screen.rounds[0].Problem.Hint, "opdock dev -- manager") {
		t.Errorf("it showed %+v", screen.rounds)
	}
}

// A subcommand that is added to the Deployment, as the message advises, or changed there, is used at once.
func TestSubcommandOfASavedDeployment(t *testing.T) {
	s := scriptSession(t, nil, `case "$*" in *--help) printf 'Available Commands:\n  agent   One part\n  manager   The other\n\nFlags:\n';; agent|manager) echo Starting workers; exec sleep 600;; esac`)
	save := func(args string) {
		write(t, s.Project.Dir, map[string]string{"deploy/operator.yaml": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: mine, namespace: default},
  spec: {template: {spec: {containers: [{name: manager, image: mine, args: [` + args + `]}]}}}}`})
	}
	save("")
	expectRound(t, s.do(t.Context(), workManifests|workFlags|workRestart, Round{}), []string{"restart: started", "run: the operator exited with status 0"}, "")
	for _, step := range []struct{ args, command, done string }{
		{"manager", "manager", "started"},
		{"agent", "agent", "restarted"},
		{"agent, --verbose", "agent", ""}, // flags of the Deployment are not used
	} {
		save(step.args)
		result := s.do(t.Context(), workManifests, Round{})
		var done []string
		for _, one := range result.round.Steps {
			done = append(done, one.Text)
		}
		if strings.Join(done, ", ") != step.done || result.round.Problem != nil {
			t.Errorf("with %s, it did %q, problem %+v", step.args, done, result.round.Problem)
		}
		if !slices.Contains(s.process.cmd.Args, step.command) {
			t.Errorf("with %s, it runs as %q", step.args, s.process.cmd.Args)
		}
	}
}

// rounds is a screen that keeps the rounds.
type rounds struct {
	terminal

	rounds []Round
}

func (r *rounds) Round(one Round) { r.rounds = append(r.rounds, one) }

// Webhooks that the manifests leave out may be turned off in the operator, which works without them.
func TestWebhooksThatAreTurnedOff(t *testing.T) {
	s := scriptSession(t, nil, "echo Starting workers; exec sleep 600")
	screen := &terminal{}
	s.Screen = screen
	hook := object(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: unserved}}")
	s.manifests.webhooks, s.manifests.undeployed, s.plan.webhookPort = []*unstructured.Unstructured{hook}, true, s.ports.webhooks
	for _, step := range []string{"restart: started", "restart: restarted"} {
		if err := s.leadWebhooksHere(t.Context()); err != nil { // as another build that serves them
			t.Fatal(err)
		}
		expectRound(t, s.do(t.Context(), workRestart, Round{}), []string{step}, string(reconciling))
		if s.exists(t, hook) {
			t.Errorf("%s: they are configured", step)
		}
	}
	if err := s.configureAtOnce(); err != nil {
		t.Errorf("the same operator: it waited again: %v", err)
	}
	s.manifests.env = []string{"ENABLE_WEBHOOKS=true"}
	if err := s.configureAtOnce(); err == nil {
		t.Error("another variable may turn them on, and it did not wait")
	}
	s.manifests.env, s.builder.built = nil, digest{2}
	if err := s.configureAtOnce(); err == nil {
		t.Error("another build may serve them, and it did not wait")
	}
	screen.expectOne(t, "does not serve the webhooks of config/webhook")
}

// Several processes of an operator run at once, each in a session of its own.
func TestWebhooksThatAreTurnedOffInSeveralProcesses(t *testing.T) {
	first := scriptSession(t, nil, "echo Starting workers; exec sleep 600")
	screen := &terminal{}
	hook := object(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: unserved}}")
	op := &Operator{
		options:   OperatorOptions{Project: first.Project, Main: ".", StateDir: first.StateDir, Say: screen.Say},
		builder:   first.builder,
		manifests: manifests{webhooks: []*unstructured.Unstructured{hook}, undeployed: true},
	}
	begin := func() *Session {
		s, err := op.session(t.TempDir(), first.Cluster.Config)
		if err != nil {
			t.Fatal(err)
		}
		if s.process, err = startProcess(processSpec{binary: s.builder.output, dir: s.Project.Dir, line: func(string) {}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.process.stop(stopGrace) })
		s.certificates, s.plan.webhookPort = first.certificates, first.ports.webhooks
		return s
	}
	var both sync.WaitGroup
	for range 2 {
		s := begin()
		both.Go(func() {
			var todo work
			if err := s.configureWebhooks(t.Context(), &Round{}, &todo); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if err := begin().configureAtOnce(); err != nil {
		t.Errorf("it waited again: %v", err)
	}
	screen.expectOne(t, "does not serve the webhooks of config/webhook")
}

// configureAtOnce configures webhooks, and fails if that means to wait.
func (s *Session) configureAtOnce() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var todo work
	return s.configureWebhooks(ctx, &Round{}, &todo)
}

// expectOne expects exactly one message with a text.
func (s *terminal) expectOne(t *testing.T, text string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Count(strings.Join(s.texts, "\n"), text) != 1 {
		t.Errorf("it said %q", s.texts)
	}
}

// expectRound compares what a round did, and the state in which the operator is; without one, it has crashed.
func expectRound(t *testing.T, result outcome, steps []string, state string) {
	t.Helper()
	var got []string
	for _, one := range result.round.Steps {
		got = append(got, one.Name+": "+one.Text)
	}
	if !slices.Equal(got, steps) || result.crashed != (state == "") || result.round.State != state || result.round.Problem != nil {
		t.Errorf("it did %q, crashed: %v, state %q, problem %+v", got, result.crashed, result.round.State, result.round.Problem)
	}
}
