// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/testenv"
)

func replaced(text, before, after string) string {
	if !strings.Contains(text, before) {
		panic(before + " is not in the text")
	}
	return strings.ReplaceAll(text, before, after)
}

// What package flag and pflag print.
const (
	standardHelp = `Usage of /tmp/manager:
  -health-probe-bind-address string
    	The address the probe endpoint binds to. (default ":8081")
  -kubeconfig string
    	Paths to a kubeconfig. Only required if out-of-cluster.
  -leader-elect
    	Enable leader election for controller manager.
  -metrics-bind-address string
    	The address. Use --not-a-flag to do nothing. (default "0")
  -v	verbose
  -webhook-cert-path string
    	The directory.
`
	pflagHelp = `A controller.

Usage:
  manager [flags]

Flags:
      --enable-leader-election   run only once
  -h, --help                     help for manager
  -m, --metrics-addr string      where (default ":8080")
      --webhook-port int         port (default 9443)
      --cert-dir string          folder
`
)

func TestParseFlags(t *testing.T) {
	for name, test := range map[string]struct {
		help string
		want []string
	}{
		"flag":                  {standardHelp, []string{"health-probe-bind-address", "kubeconfig", "leader-elect", "metrics-bind-address", "v", "webhook-cert-path"}},
		"pflag":                 {pflagHelp, []string{"cert-dir", "enable-leader-election", "help", "metrics-addr", "webhook-port"}},
		"a log instead of help": {"2026-01-01 INFO starting\nE0101 -kubeconfig is missing\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for flag := range parseFlags(test.help) {
				got = append(got, flag)
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestHelpLeavesNoProcess asks an operator for its flags that starts another program before it looks at them.
func TestHelpLeavesNoProcess(t *testing.T) {
	dir := t.TempDir()
	held, binary := filepath.Join(dir, "held"), filepath.Join(dir, "operator")
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nsleep 600 >" + held + " 2>&1 &\necho '  -kubeconfig string'\n"
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		file, err := os.Open(held) // waits for the other program
		if err == nil {
			_, err = io.Copy(io.Discard, file) // and for its end
			file.Close()
		}
		over <- err
	}()
	help, err := askHelp(t.Context(), binary, dir, os.Environ())
	if known := parseFlags(help); err != nil || !known["kubeconfig"] {
		t.Errorf("got %v, %v", known, err)
	}
	// If the program was ended before it opened the file, this is what the other end waits for.
	if file, err := os.OpenFile(held, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		file.Close()
	}
	testenv.Await(t, func() string {
		select {
		case err := <-over:
			if err != nil {
				t.Error(err)
			}
			return ""
		default:
			return "the end of the program that the operator started"
		}
	})
}

// Where an operator records is told by a flag if it has one, as the fleet's manager does, and else by its environment.
func TestPlanOfRecords(t *testing.T) {
	const flag = "  -why-bind-address string\n"
	for name, test := range map[string]struct {
		help     string
		where    string
		user     string
		args     string
		records  string
		variable bool
	}{
		"a variable":               {"", "127.0.0.1:6000", "", "", "127.0.0.1:6000", true},
		"a flag":                   {flag, "127.0.0.1:6000", "", "--why-bind-address=127.0.0.1:6000", "127.0.0.1:6000", false},
		"the user's":               {flag, "127.0.0.1:6000", "--why-bind-address=:8082", "--why-bind-address=:8082", "127.0.0.1:8082", false},
		"the user wants none":      {flag, "127.0.0.1:6000", "--why-bind-address=0", "--why-bind-address=0", "", false},
		"no observer":              {"", "", "", "", "", false},
		"no observer, with a flag": {flag, "", "", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := newPlan(parseFlags(test.help), surroundings{records: test.where}, strings.Fields(test.user))
			if args := strings.Join(got.args, " "); args != test.args || got.records != test.records || got.recordsByVariable != test.variable {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	where := surroundings{kubeconfig: "/k", probe: "127.0.0.1:4000", webhookPort: 5000, certificate: "/certs"}
	for name, test := range map[string]struct {
		help string
		user []string
		want plan
	}{
		"kubebuilder": {standardHelp, nil, plan{
			args:  []string{"--kubeconfig=/k", "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:4000", "--webhook-cert-path=/certs"},
			probe: "127.0.0.1:4000", webhookPort: 9443, fixedPort: true,
		}},
		"older names": {pflagHelp, nil, plan{
			args:        []string{"--enable-leader-election=false", "--metrics-addr=0", "--webhook-port=5000", "--cert-dir=/certs"},
			webhookPort: 5000,
		}},
		"cert-manager's names": {"      --webhook-certificate-dir string\n      --webhook-port int\n", nil, plan{
			args: []string{"--webhook-port=5000", "--webhook-certificate-dir=/certs"}, webhookPort: 5000,
		}},
		"no flags": {"", []string{"serve"}, plan{args: []string{"serve"}, webhookPort: 9443, fixedPort: true, ownCertificates: true}},
		"the user knows better": {
			standardHelp, []string{"-health-probe-bind-address=:9999", "--leader-elect", "--kubeconfig", "/mine", "--webhook-cert-path=/my"},
			plan{
				args:  []string{"--metrics-bind-address=0", "-health-probe-bind-address=:9999", "--leader-elect", "--kubeconfig", "/mine", "--webhook-cert-path=/my"},
				probe: "127.0.0.1:9999", webhookPort: 9443, fixedPort: true,
			},
		},
		"the user's port": {pflagHelp, []string{"--webhook-port", "7000"}, plan{
			args:        []string{"--enable-leader-election=false", "--metrics-addr=0", "--cert-dir=/certs", "--webhook-port", "7000"},
			webhookPort: 7000,
		}},
		"the user sets no port": {pflagHelp, []string{"--webhook-port=0"}, plan{
			args:        []string{"--enable-leader-election=false", "--metrics-addr=0", "--cert-dir=/certs", "--webhook-port=0"},
			webhookPort: 9443,
		}},
		"the user wants no probe": {standardHelp, []string{"--health-probe-bind-address=0"}, plan{
			args:        []string{"--kubeconfig=/k", "--leader-elect=false", "--metrics-bind-address=0", "--webhook-cert-path=/certs", "--health-probe-bind-address=0"},
			webhookPort: 9443, fixedPort: true,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newPlan(parseFlags(test.help), where, test.user)
			if !slices.Equal(got.args, test.want.args) {
				t.Errorf("arguments: got %q, want %q", got.args, test.want.args)
			}
			got.args, test.want.args = nil, nil
			if got.probe != test.want.probe || got.webhookPort != test.want.webhookPort || got.fixedPort != test.want.fixedPort || got.ownCertificates != test.want.ownCertificates {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// An operator with subcommands runs with the one that the user names, or else the Deployment.
func TestSubcommands(t *testing.T) {
	const help = `cat <<'END'
Runs everything.

Usage:
  manager [command]

Available Commands:
  completion  Generate the autocompletion script
  controller  Run the operator
  instance    Run a database

Flags:
  -h, --help   help for manager
END
`
	binary := filepath.Join(t.TempDir(), "manager")
	script := "#!/bin/sh\nif [ \"$1\" = controller ]; then echo '      --leader-elect   run only once'; exit; fi\n" + help
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [{name: manager, COMMAND}]}}}}"
	for name, test := range map[string]struct{ command, user, want string }{
		"of the Deployment":               {"command: [/manager], args: [controller, --leader-elect, --size=2]", "", "controller --leader-elect=false"},
		"in the command":                  {"command: [/manager, controller]", "--size=1", "controller --leader-elect=false --size=1"},
		"without a command":               {"args: [controller]", "", "controller --leader-elect=false"},
		"other words of the Deployment":   {"args: [controller, $(MODE), /etc/manager]", "", "controller --leader-elect=false"},
		"of the user":                     {"args: [instance]", "controller --size=1", "controller --leader-elect=false --size=1"},
		"none":                            {"args: [--leader-elect]", "--size=1", "--size=1"},
		"an argument that is no command":  {"args: [else]", "", ""},
		"an argument of the user's":       {"args: [else]", "name", "name"},
		"another program":                 {"command: [/bin/sh, -c, controller]", "", ""},
		"a word of the description alone": {"args: [Runs]", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := []*unstructured.Unstructured{object(t, replaced(deployment, "COMMAND", test.command))}
			called, err := askUsage(t.Context(), binary, ".", os.Environ(), argumentsIn(manifests), strings.Fields(test.user))
			if got := strings.Join(called.plan(surroundings{}).args, " "); err != nil || got != test.want {
				t.Errorf("it is called with %q, %v", got, err)
			}
			var hint string
			if len(called.command) == 0 && test.user != "name" {
				hint = "the operator has 2 subcommands (controller, instance), and no Deployment in the manifests selects one: opdock dev -- controller"
			}
			if called.hint() != hint {
				t.Errorf("the hint is %q", called.hint())
			}
		})
	}
}
