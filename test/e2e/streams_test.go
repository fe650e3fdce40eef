// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/testenv"
)

const logsAnnotation = "opdock.dev/logs"

func (w *world) annotatedPod(t *testing.T, annotations map[string]string) *corev1.Pod {
	t.Helper()
	p := pod("", corev1.RestartPolicyAlways)
	p.Annotations = annotations
	return w.awaitReady(t, w.createPod(t, p).Name)
}

func TestLogsOfSimulatedPods(t *testing.T) {
	w := newWorld(t)
	silent := w.annotatedPod(t, nil)
	if out, err := w.kubectl(t, "logs", silent.Name); err != nil || !strings.Contains(out, "simulated") || !strings.Contains(out, logsAnnotation) {
		t.Errorf("without an annotation: %v\n%s", err, out)
	}
	talking := w.annotatedPod(t, map[string]string{logsAnnotation: "starting\nlistening on 8080"})
	if out, err := w.kubectl(t, "logs", talking.Name, "--tail=1"); err != nil || out != "listening on 8080\n" {
		t.Errorf("with an annotation: %v\n%s", err, out)
	}
	pulling := w.createPod(t, pod("image-pull-error", corev1.RestartPolicyAlways))
	w.awaitEvent(t, pulling.Name, "Failed")
	if out, err := w.kubectl(t, "logs", pulling.Name); err == nil || !strings.Contains(out, "waiting to start") {
		t.Errorf("of a container that does not start: %v\n%s", err, out)
	}
}

func TestExecInSimulatedPods(t *testing.T) {
	w := newWorld(t)
	p := w.annotatedPod(t, map[string]string{"opdock.dev/exec": `
- command: pg_isready
  stdout: "accepting connections\n"
- command: psql *
  stderr: "no such table\n"
  exitCode: 3
- command: cat
  echo: true
`})
	if out, err := w.kubectl(t, "exec", p.Name, "--", "pg_isready"); err != nil || out != "accepting connections\n" {
		t.Errorf("a success: %v\n%s", err, out)
	}
	out, err := w.kubectl(t, "exec", p.Name, "--", "psql", "-c", "select 1")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(out, "no such table") {
		t.Errorf("a failure: %v\n%s", err, out)
	}
	if out, err := w.kubectl(t, "exec", p.Name, "--", "ls"); !errors.As(err, &exit) || exit.ExitCode() != 126 || !strings.Contains(out, "opdock.dev/exec") {
		t.Errorf("what is not configured: %v\n%s", err, out)
	}
	typing := w.kubectlCommand(t, "exec", "-i", p.Name, "--", "cat")
	typing.Stdin = strings.NewReader("typed")
	if output, err := typing.CombinedOutput(); err != nil || string(output) != "typed" {
		t.Errorf("standard input: %v\n%s", err, output)
	}
}

// TestAttachToSimulatedPods sees the log of a container and what it writes later, until the container ends.
func TestAttachToSimulatedPods(t *testing.T) {
	w := newWorld(t)
	p := w.annotatedPod(t, map[string]string{logsAnnotation: "starting"})
	attached := w.kubectlCommand(t, "attach", p.Name)
	output := must(attached.StdoutPipe())(t)
	try(t, attached.Start())
	lines := bufio.NewScanner(output)
	nextIs := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("it shows %q, %v; want %q", lines.Text(), lines.Err(), want)
		}
	}
	nextIs("starting")
	patch := []byte(`{"metadata":{"annotations":{"` + logsAnnotation + `":"starting\nlistening on 8080"}}}`)
	must(w.CoreV1().Pods(w.namespace).Patch(t.Context(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{}))(t)
	nextIs("listening on 8080")
	try(t, w.CoreV1().Pods(w.namespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{}))
	if lines.Scan() {
		t.Errorf("after the end of the pod it shows %q", lines.Text())
	}
	try(t, attached.Wait())

	// One who types is detached at the end of the input, and what was typed goes nowhere.
	p = w.annotatedPod(t, map[string]string{logsAnnotation: "starting"})
	typing := w.kubectlCommand(t, "attach", "-i", "-q", p.Name)
	typing.Stdin = strings.NewReader("typed\n")
	if out, err := typing.Output(); err != nil || string(out) != "starting\n" {
		t.Errorf("with an input: %v\n%s", err, out)
	}
	pulling := w.createPod(t, pod("image-pull-error", corev1.RestartPolicyAlways))
	w.awaitEvent(t, pulling.Name, "Failed")
	if out, err := w.kubectl(t, "attach", pulling.Name, "--pod-running-timeout=1s"); err == nil || strings.Contains(out, "simulated") {
		t.Errorf("to a container that does not start: %v\n%s", err, out)
	}
	if out, err := w.kubectl(t, "attach", p.Name, "-c", "sidecar"); err == nil || !strings.Contains(out, "sidecar") {
		t.Errorf("to a container that is not there: %v\n%s", err, out)
	}
}

func TestPortForwardToSimulatedPods(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	p := w.annotatedPod(t, map[string]string{"opdock.dev/port-forward": "80=" + server.Listener.Addr().String()})
	port := must(freeport.Find())(t)
	forwarding := w.kubectlCommand(t, "port-forward", p.Name, fmt.Sprintf("%d:80", port))
	try(t, forwarding.Start())
	defer func() {
		_ = forwarding.Process.Kill()
		_ = forwarding.Wait()
	}()
	testenv.Eventually(t, "the port leads to the server", func() error {
		response, err := http.Get("http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return errors.Join(err, expect("the answer", string(body), "hello"))
	})
}
