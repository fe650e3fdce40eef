// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
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

// helpTimeout is how long an operator may take to print its help. One that does not know --help may start instead; it is
// given no cluster, and ended.
const helpTimeout = 3 * time.Second

// flagSet holds the names of the flags that an operator knows.
type flagSet map[string]bool

// flagLine is how package flag and pflag list a flag: "  -name value" and "  -n, --name value".
var flagLine = regexp.MustCompile(`(?m)^\s{1,8}(?:-\w, )?--?([A-Za-z][\w.-]*)`)

// parseFlags reads the flags from what an operator prints for --help.
func parseFlags(help string) flagSet {
	known := flagSet{}
	for _, match := range flagLine.FindAllStringSubmatch(help, -1) {
		known[match[1]] = true
	}
	return known
}

// askFlags runs the operator with --help.
func askFlags(ctx context.Context, binary, dir string, env []string) (flagSet, error) {
	ctx, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--help")
	cmd.Dir = dir
	// If it starts for real, then without a cluster.
	cmd.Env = append(slices.Clone(env), "KUBECONFIG=/dev/null", "KUBERNETES_SERVICE_HOST=", "HOME=/nonexistent")
	cmd.SysProcAttr = processAttributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeGrace
	// The exit code says nothing: package flag ends with 0 and others with 2.
	help, err := cmd.CombinedOutput()
	if cmd.Process == nil {
		return nil, fmt.Errorf("running the operator with --help: %w", err)
	}
	return parseFlags(string(help)), nil
}

// The names under which operators know the same thing; the first that there is gets used.
var (
	kubeconfigFlags  = []string{"kubeconfig"}
	leaderFlags      = []string{"leader-elect", "enable-leader-election", "leader-election", "leader-election-enabled"}
	metricsFlags     = []string{"metrics-bind-address", "metrics-addr", "metrics-bind-addr", "metrics-address"}
	probeFlags       = []string{"health-probe-bind-address", "health-probe-addr", "health-addr", "healthz-addr", "probe-addr"}
	webhookPortFlags = []string{"webhook-port", "webhook-server-port"}
	webhookCertFlags = []string{"webhook-cert-path", "webhook-cert-dir", "webhook-certificate-dir", "cert-dir"}
	recordsFlags     = []string{"why-bind-address"}
)

// surroundings are what an operator is told about where it runs.
type surroundings struct {
	kubeconfig  string
	probe       string // host:port
	webhookPort int
	certificate string // folder with tls.crt and tls.key
	records     string // host:port; empty if nobody looks at them
}

// plan is the operator's command line, and what it comes to.
type plan struct {
	args []string
	// probe is where it can be asked whether it is ready; empty if it cannot.
	probe string
	// webhookPort is where it serves webhooks, if it does.
	webhookPort int
	// fixedPort says that it cannot be told another port for webhooks.
	fixedPort bool
	// ownCertificates says that it reads its certificate from where controller-runtime looks without being told.
	ownCertificates bool
	// records is where it serves what it records, if it does; empty if the user has told it not to.
	records string
	// recordsByVariable says that it is told that by its environment, because it has no flag for it.
	recordsByVariable bool
}

// defaultWebhookPort is controller-runtime's.
const defaultWebhookPort = 9443

// newPlan tells the operator whatever it can be told: loopback ports that are free, no leader election, no metrics. What
// the user has said on the command line is not said otherwise.
func newPlan(known flagSet, s surroundings, user []string) plan {
	p := plan{webhookPort: defaultWebhookPort, ownCertificates: true, records: s.records}
	// tell returns the name of the flag that was or will be given, and the user's value for it.
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
			p.webhookPort = port
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

// reachable turns an address to listen on into one to ask: ":8081" means all of this machine's.
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
