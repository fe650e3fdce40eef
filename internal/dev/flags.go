// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// helpTimeout is how long an operator may take to print its help. An operator without --help may start instead; it
// gets no cluster and is stopped.
const helpTimeout = 3 * time.Second

// flagSet holds the names of an operator's flags.
type flagSet map[string]bool

// flagLine is how package flag and pflag list a flag: "  -name value" and "  -n, --name value".
var flagLine = regexp.MustCompile(`(?m)^\s{1,8}(?:-\w, )?--?([A-Za-z][\w.-]*)`)

// parseFlags reads the flags from the output of --help.
func parseFlags(help string) flagSet {
	known := flagSet{}
	for _, match := range flagLine.FindAllStringSubmatch(help, -1) {
		known[match[1]] = true
	}
	return known
}

// askHelp runs the operator, or a subcommand of it, with --help.
func askHelp(ctx context.Context, binary, dir string, env []string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append(slices.Clone(command), "--help")...)
	cmd.Dir = dir
	// If it starts for real, then without a cluster.
	cmd.Env = append(slices.Clone(env), "KUBECONFIG=/dev/null", "KUBERNETES_SERVICE_HOST=", "HOME=/nonexistent")
	cmd.SysProcAttr = processAttributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeGrace
	// The exit code does not matter: package flag exits with 0 and others with 2.
	help, err := cmd.CombinedOutput()
	if cmd.Process == nil {
		return "", fmt.Errorf("running the operator with --help: %w", err)
	}
	_ = cmd.Cancel() // what it started, if it looks at its flags late
	return string(help), nil
}

// Alternative names of flags; the first one that exists is used.
var (
	kubeconfigFlags  = []string{"kubeconfig"}
	leaderFlags      = []string{"leader-elect", "enable-leader-election", "leader-election", "leader-election-enabled"}
	metricsFlags     = []string{"metrics-bind-address", "metrics-addr", "metrics-bind-addr", "metrics-address"}
	probeFlags       = []string{"health-probe-bind-address", "health-probe-addr", "health-addr", "healthz-addr", "probe-addr"}
	webhookPortFlags = []string{"webhook-port", "webhook-server-port"}
	webhookCertFlags = []string{"webhook-cert-path", "webhook-cert-dir", "webhook-certificate-dir", "cert-dir"}
	recordsFlags     = []string{"why-bind-address"}
)

// surroundings are the settings that an operator gets for this machine.
type surroundings struct {
	kubeconfig  string
	probe       string // host:port
	webhookPort int
	certificate string // folder with tls.crt and tls.key
	records     string // host:port; empty if they are not read
}

// plan is the operator's command line, and its consequences.
type plan struct {
	args []string
	// probe is the address of its readiness probe; empty if there is none.
	probe string
	// webhookPort is where it serves webhooks, if it does.
	webhookPort int
	// fixedPort means that the port for webhooks cannot be set.
	fixedPort bool
	// ownCertificates means that it reads its certificate from controller-runtime's default directory.
	ownCertificates bool
	// records is the address where it serves its records; empty if the user has turned that off.
	records string
	// recordsByVariable means that a variable sets this address, because there is no flag for it.
	recordsByVariable bool
}

// defaultWebhookPort is controller-runtime's.
const defaultWebhookPort = 9443

// newPlan sets the flags that the operator has: free loopback ports, no leader election, no metrics. Flags of the
// user take precedence.
func newPlan(known flagSet, s surroundings, user []string) plan {
	p := plan{webhookPort: defaultWebhookPort, ownCertificates: true, records: s.records}
	// tell returns the name of the flag that is used, and the user's value for it.
	tell := func(names []string, value string) (name, given string) {
		for _, name := range names {
			if given, says := userValue(user, name); says {
				return name, given
			}
		}
		for _, name := range names {
			if known[name] {
				p.args = append(p.args, "--"+name+"="+value)
				return name, ""
			}
		}
		return "", ""
	}
	tell(kubeconfigFlags, s.kubeconfig)
	tell(leaderFlags, "false")
	tell(metricsFlags, "0")
	switch name, given := tell(probeFlags, s.probe); {
	case given != "":
		p.probe = reachable(given)
	case name != "":
		p.probe = s.probe
	}
	switch name, given := tell(webhookPortFlags, strconv.Itoa(s.webhookPort)); {
	case given != "":
		if port, err := strconv.Atoi(given); err == nil {
			p.webhookPort = cmp.Or(port, defaultWebhookPort) // which 0 selects in controller-runtime, unless the operator then has no webhooks
		}
	case name != "":
		p.webhookPort = s.webhookPort
	default:
		p.fixedPort = true
	}
	if name, _ := tell(webhookCertFlags, s.certificate); name != "" {
		p.ownCertificates = false
	}
	if s.records != "" {
		switch name, given := tell(recordsFlags, s.records); {
		case given != "":
			p.records = reachable(given)
		case name == "":
			p.recordsByVariable = true
		}
	}
	p.args = append(p.args, user...)
	return p
}

// reachable turns a listen address into one to connect to: ":8081" means all addresses of this machine.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "0" {
		return ""
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// userValue finds a flag among the arguments that the user gives.
func userValue(args []string, name string) (value string, found bool) {
	for i, arg := range args {
		flag, isFlag := strings.CutPrefix(arg, "-")
		if !isFlag {
			continue
		}
		flag = strings.TrimPrefix(flag, "-")
		if value, found := strings.CutPrefix(flag, name+"="); found {
			return value, true
		}
		if flag == name {
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				return args[i+1], true
			}
			return "", true
		}
	}
	return "", false
}
