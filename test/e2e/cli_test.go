// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

// cli is a user with a home of its own.
type cli struct {
	binary string
	env    []string
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	return newCLIIn(t, t.TempDir())
}

func newCLIIn(t *testing.T, home string) *cli {
	t.Helper()
	testenv.ControlPlane(t)
	t.Parallel()
	u := &cli{
		binary: testenv.Program(t),
		env:    append(os.Environ(), "OPDOCK_HOME="+home, "OPDOCK_CLUSTER=", "KUBECONFIG="),
	}
	// Even if the test has failed half way, or the folder could not be removed while a process writes to it.
	t.Cleanup(func() {
		stop := exec.Command(u.binary, "down", "--all", "--delete")
		stop.Env = u.env
		if output, err := stop.CombinedOutput(); err != nil && t.Failed() {
			t.Logf("stopping what is left: %v\n%s", err, output)
		}
	})
	return u
}

func (u *cli) command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(within(t), u.binary, arguments...)
	command.Env = u.env
	return command
}

// run returns what the program printed for other programs, for people, and its exit code.
func (u *cli) run(t *testing.T, arguments ...string) (out, messages string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := u.command(t, arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("opdock %s: %v", strings.Join(arguments, " "), err)
	}
	return stdout.String(), stderr.String(), command.ProcessState.ExitCode()
}

// ok runs the program and returns its output; it has to succeed.
func (u *cli) ok(t *testing.T, arguments ...string) string {
	t.Helper()
	out, messages, code := u.run(t, arguments...)
	if code != 0 {
		t.Fatalf("opdock %s: exit code %d\n%s%s", strings.Join(arguments, " "), code, out, messages)
	}
	return out
}

// fails runs the program, which has to fail with a message that says something.
func (u *cli) fails(t *testing.T, says string, arguments ...string) {
	t.Helper()
	out, messages, code := u.run(t, arguments...)
	if code == 0 || !strings.Contains(messages, says) {
		t.Errorf("opdock %s: exit code %d, and %q is not in:\n%s%s", strings.Join(arguments, " "), code, says, out, messages)
	}
}

// status is what opdock status -o json says about one cluster.
func (u *cli) status(t *testing.T, name string) cluster.Status {
	t.Helper()
	out, messages, code := u.run(t, "status", "--name", name, "-o", "json")
	var s cluster.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("opdock status: %v\n%s%s", err, out, messages)
	}
	if alive := s.State == cluster.Alive; alive != (code == 0) {
		t.Errorf("the cluster is %s and the exit code is %d", s.State, code)
	}
	return s
}

func TestCLILifecycle(t *testing.T) {
	u := newCLI(t)
	out := u.ok(t, "up")
	for _, part := range []string{`"dock" is ready`, "export KUBECONFIG=", "opdock down"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in what up prints:\n%s", part, out)
		}
	}
	first := u.status(t, "dock")
	if first.State != cluster.Alive || first.PID == 0 || first.Version != cluster.KubernetesVersion || first.Server == "" {
		t.Errorf("status: %+v", first)
	}
	u.ok(t, "kubectl", "create", "deployment", "web", "--image=app:1", "--replicas=2")
	u.ok(t, "kubectl", "rollout", "status", "deployment/web", "--timeout=90s")
	u.ok(t, "kubectl", "create", "configmap", keptName)
	if out := u.ok(t, "kubectl", "explain", "deployment.spec.replicas"); !strings.Contains(out, "integer") {
		t.Errorf("kubectl explain: %s", out)
	}
	if out := u.ok(t, "up"); !strings.Contains(out, "already running") || u.status(t, "dock").PID != first.PID {
		t.Errorf("up of a cluster that runs says %s", out)
	}
	u.fails(t, "NotFound", "kubectl", "get", "configmap", "missing")

	u.ok(t, "down")
	if s := u.status(t, "dock"); s.State != cluster.Stopped {
		t.Errorf("after down: %+v", s)
	}
	u.fails(t, "is stopped", "kubectl", "get", "nodes")
	u.ok(t, "down") // no error: it is as it should be

	if out := u.ok(t, "up", "--quiet", "--nodes", "3"); out != "" {
		t.Errorf("quietly it says %s", out)
	}
	if again := u.status(t, "dock"); again.State != cluster.Alive || again.Server != first.Server || again.PID == first.PID {
		t.Errorf("after the second up: %+v", again)
	}
	u.ok(t, "kubectl", "get", "configmap", keptName)
	u.ok(t, "kubectl", "scale", "deployment/web", "--replicas=4")
	u.ok(t, "kubectl", "rollout", "status", "deployment/web", "--timeout=90s")
	if nodes := strings.Fields(u.ok(t, "kubectl", "get", "nodes", "-o", "name")); len(nodes) != 3 {
		t.Errorf("the nodes are %v", nodes)
	}
	u.ok(t, "down", "--delete")
	if s := u.status(t, "dock"); s.State != cluster.NeverStarted {
		t.Errorf("after down --delete: %+v", s)
	}
	if _, err := os.Stat(first.Dir); !os.IsNotExist(err) {
		t.Errorf("after down --delete, %s: %v", first.Dir, err)
	}
}

func TestCLIUnknownCluster(t *testing.T) {
	u := newCLI(t)
	u.fails(t, `cluster "dock" does not exist`, "down")
	u.fails(t, "never started", "kubectl", "get", "nodes")
	u.fails(t, "never started", "kubeconfig")
	u.fails(t, "is not a valid cluster name", "up", "--name", "No_Name")
	if out := u.ok(t, "status", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("status of no cluster: %s", out)
	}
}

func TestCLIDeadCluster(t *testing.T) {
	u := newCLI(t)
	u.ok(t, "up")
	u.ok(t, "kubectl", "create", "configmap", keptName)
	kill := func() {
		t.Helper()
		try(t, syscall.Kill(u.status(t, "dock").PID, syscall.SIGKILL))
		testenv.Eventually(t, "it is dead", func() error { return expect("it", u.status(t, "dock").State, cluster.Dead) })
	}
	kill()
	u.fails(t, "is dead", "kubectl", "get", "nodes")
	u.fails(t, "was already dead", "down")
	if s := u.status(t, "dock"); s.State != cluster.Stopped {
		t.Errorf("after down: %+v", s)
	}
	u.ok(t, "up")
	u.ok(t, "kubectl", "get", "configmap", keptName)
	kill()
	u.ok(t, "up") // without a down in between
	u.ok(t, "kubectl", "get", "configmap", keptName)
	kill()
	u.ok(t, "down", "--delete")
	if s := u.status(t, "dock"); s.State != cluster.NeverStarted {
		t.Errorf("after down --delete: %+v", s)
	}
}

func TestCLIKubeconfigAs(t *testing.T) {
	u := newCLI(t)
	u.ok(t, "up")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	whoami := func() authenticationv1.UserInfo {
		t.Helper()
		var review authenticationv1.SelfSubjectReview
		try(t, json.Unmarshal([]byte(u.ok(t, "kubectl", "--kubeconfig", path, "auth", "whoami", "-o", "json")), &review))
		slices.Sort(review.Status.UserInfo.Groups) // a certificate does not keep their order
		return review.Status.UserInfo
	}
	try(t, os.WriteFile(path, []byte(u.ok(t, "kubeconfig", "--as", "system:serviceaccount:default:operator")), 0o600))
	if user := whoami(); user.Username != "system:serviceaccount:default:operator" ||
		fmt.Sprint(user.Groups) != "[system:authenticated system:serviceaccounts system:serviceaccounts:default]" {
		t.Errorf("as a service account one is %+v", user)
	}
	u.fails(t, "Forbidden", "kubectl", "--kubeconfig", path, "get", "configmaps")
	u.ok(t, "kubectl", "create", "rolebinding", "operator", "--clusterrole=view", "--serviceaccount=default:operator")
	testenv.Eventually(t, "the role counts", func() error {
		_, messages, code := u.run(t, "kubectl", "--kubeconfig", path, "get", "configmaps")
		if code != 0 {
			return errors.New(messages)
		}
		return nil
	})
	u.fails(t, "is forbidden", "kubectl", "--kubeconfig", path, "create", "configmap", "mine")

	try(t, os.WriteFile(path, []byte(u.ok(t, "kubeconfig", "--as", "ada", "--as-group", "sailors", "--as-group", "a,b")), 0o600))
	if user := whoami(); user.Username != "ada" || fmt.Sprint(user.Groups) != "[a,b sailors system:authenticated]" {
		t.Errorf("as a user with groups one is %+v", user)
	}
	try(t, os.WriteFile(path, []byte(u.ok(t, "kubeconfig")), 0o600))
	u.ok(t, "kubectl", "--kubeconfig", path, "get", "nodes")
}

// output collects what a running program says, and lets the test wait for something in it.
type output struct {
	lines *bufio.Scanner
	all   strings.Builder
}

func (o *output) await(t *testing.T, text string) {
	t.Helper()
	for o.lines.Scan() {
		fmt.Fprintln(&o.all, o.lines.Text())
		if strings.Contains(o.lines.Text(), text) {
			return
		}
	}
	t.Fatalf("%q is not in what it said:\n%s", text, o.all.String())
}

// background starts the program and returns it with the reader of its standard error.
func (u *cli) background(t *testing.T, arguments ...string) (*exec.Cmd, *output) {
	t.Helper()
	command := u.command(t, arguments...)
	pipe := must(command.StderrPipe())(t)
	command.Stdout = command.Stderr
	try(t, command.Start())
	return command, &output{lines: bufio.NewScanner(pipe)}
}

func TestCLIForeground(t *testing.T) {
	u := newCLI(t)
	command, said := u.background(t, "up", "--foreground")
	said.await(t, "is ready.")
	u.ok(t, "kubectl", "create", "configmap", keptName)
	try(t, command.Process.Signal(os.Interrupt))
	said.await(t, "is stopped")
	if err := command.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if s := u.status(t, "dock"); s.State != cluster.Stopped {
		t.Errorf("after Ctrl-C: %+v", s)
	}

	// Killing the program stops the cluster that it runs.
	command, said = u.background(t, "up", "--foreground")
	said.await(t, "is ready.")
	u.ok(t, "kubectl", "get", "configmap", keptName)
	try(t, command.Process.Kill())
	_ = command.Wait() // says that it was killed
	testenv.Eventually(t, "the cluster has ended in order", func() error {
		return expect("it", u.status(t, "dock").State, cluster.Stopped)
	})
}

func TestCLIInterruptedUp(t *testing.T) {
	u := newCLI(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		// A cluster of one node may be ready before the signal arrives.
		command, said := u.background(t, "up", "--nodes", "200")
		said.await(t, "etcd is up")
		try(t, command.Process.Signal(signal))
		said.await(t, "interrupted")
		var exit *exec.ExitError
		if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() < 1 {
			t.Errorf("after %v: %v", signal, err)
		}
		if s := u.status(t, "dock"); s.State == cluster.Alive || s.State == cluster.Dead {
			t.Errorf("after %v: %+v", signal, s)
		}
	}
	u.ok(t, "up")
}

func TestCLIEphemeral(t *testing.T) {
	u := newCLI(t)
	u.ok(t, "up", "--ephemeral")
	s := u.status(t, "dock")
	if s.State != cluster.Alive || !s.Ephemeral {
		t.Errorf("it is %+v", s)
	}
	u.ok(t, "kubectl", "get", "nodes")
	u.ok(t, "down")
	if left := must(os.ReadDir(filepath.Dir(s.Dir)))(t); len(left) != 0 {
		t.Errorf("it leaves %v", left)
	}
	if s := u.status(t, "dock"); s.State != cluster.NeverStarted {
		t.Errorf("after down it is %+v", s)
	}
}
