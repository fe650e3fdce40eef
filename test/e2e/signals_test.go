// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

// steps of a start, in their order.
var steps = []string{"state", "etcd", "apiserver", "controllers", "nodes"}

// outcome is how a control plane process ended and what it said last.
type outcome struct {
	exit   int // -1 if a signal ended it
	ready  bool
	reason cluster.Reason
	hint   string
}

// serve runs the control plane itself, which package cluster would otherwise stand in front of, and sends it a
// signal as soon as it reports a step.
func serve(t *testing.T, dir, step string, send syscall.Signal) outcome {
	t.Helper()
	report, writer, err := os.Pipe()
	try(t, err)
	defer report.Close()
	process := exec.CommandContext(within(t), testenv.ControlPlane(t), "serve", "--dir", dir, "--report-fd", "3")
	process.ExtraFiles = []*os.File{writer}
	log := must(os.Create(filepath.Join(t.TempDir(), "log")))(t)
	defer log.Close()
	process.Stdout, process.Stderr = log, log
	try(t, process.Start())
	writer.Close()

	var end outcome
	lines := bufio.NewScanner(report)
	for lines.Scan() {
		var line struct{ Event, Step, Reason, Hint string }
		try(t, json.Unmarshal(lines.Bytes(), &line))
		switch line.Event {
		case "progress":
			if line.Step == step {
				try(t, process.Process.Signal(send))
			}
		case "ready":
			end.ready = true
		case "error":
			end.reason, end.hint = cluster.Reason(line.Reason), line.Hint
		}
	}
	_ = process.Wait() // its exit code is looked at below
	end.exit = process.ProcessState.ExitCode()
	if t.Failed() || end.exit > 1 {
		t.Logf("its log:\n%s", must(os.ReadFile(log.Name()))(t))
	}
	return end
}

// check reports whether the end is a good one for a signal that asks the process to stop.
func (o outcome) check(step string) error {
	if o.reason == cluster.ReasonInterrupted {
		return errors.Join(expect("exit code", o.exit, 1), expect("ready", o.ready, false), expect("no hint", o.hint == "", false))
	}
	// The last steps follow so closely on each other that the process may be ready before the signal is there.
	if o.ready && slices.Index(steps, step) > slices.Index(steps, "etcd") {
		return expect("exit code", o.exit, 0)
	}
	return fmt.Errorf("it ended with %+v", o)
}

// TestSignalDuringStart interrupts a start at every step. The process has to say so, and the next start has to
// succeed with everything that was there before.
func TestSignalDuringStart(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	t.Run("sigterm", func(t *testing.T) {
		t.Parallel()
		name, dir := stopped(t)
		for _, step := range steps {
			if err := serve(t, dir, step, syscall.SIGTERM).check(step); err != nil {
				t.Errorf("SIGTERM after step %s: %v", step, err)
			}
			if status := must(cluster.Find(name))(t); status.State != cluster.Stopped {
				t.Errorf("SIGTERM after step %s: the cluster is %s", step, status.State)
			}
		}
		keeps(t, start(t, cluster.Options{Name: name}))
	})
	t.Run("sigint", func(t *testing.T) {
		t.Parallel()
		name := clusterName(t)
		for _, step := range steps {
			if err := serve(t, stateDir(name), step, syscall.SIGINT).check(step); err != nil {
				t.Errorf("SIGINT after step %s: %v", step, err)
			}
		}
		start(t, cluster.Options{Name: name})
	})
	// At once and without a word: what is left has to do for the next start, be it a folder without a database.
	for _, step := range steps {
		t.Run("sigkill-"+step, func(t *testing.T) {
			t.Parallel()
			name := clusterName(t)
			if end := serve(t, stateDir(name), step, syscall.SIGKILL); end.exit != -1 {
				t.Errorf("it ended with %+v", end)
			}
			if status := must(cluster.Find(name))(t); status.State != cluster.Dead {
				t.Errorf("the cluster is %s", status.State)
			}
			awaitWorking(t, start(t, cluster.Options{Name: name}))
		})
	}
}

// awaitWorking checks that a cluster is a whole one: a pod becomes ready in it.
func awaitWorking(t *testing.T, c *cluster.Cluster) *corev1.Pod {
	t.Helper()
	w := &world{Interface: clientFor(t, c.Config()), cluster: c, namespace: metav1.NamespaceDefault}
	return w.startPod(t, "", corev1.RestartPolicyAlways)
}

// TestKillUnderLoad kills the control plane while clients write. What it has acknowledged has to be there
// afterwards.
func TestKillUnderLoad(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	name := clusterName(t)
	c := start(t, cluster.Options{Name: name})
	before := awaitWorking(t, c)

	const writers, enough = 8, 200
	var mu sync.Mutex
	var acknowledged []string
	full := make(chan struct{})
	var writing sync.WaitGroup
	client := clientFor(t, c.Config()).CoreV1().ConfigMaps("default")
	for writer := range writers {
		writing.Go(func() {
			for i := 0; ; i++ {
				written := configMap(fmt.Sprintf("written-%d-%d", writer, i))
				written.Data = map[string]string{"text": strings.Repeat("x", 1000)}
				if _, err := client.Create(t.Context(), written, metav1.CreateOptions{}); err != nil {
					return // killed
				}
				mu.Lock()
				acknowledged = append(acknowledged, written.Name)
				if len(acknowledged) == enough {
					close(full)
				}
				mu.Unlock()
			}
		})
	}
	gaveUp := make(chan struct{})
	go func() { writing.Wait(); close(gaveUp) }()
	select {
	case <-full:
	case <-gaveUp:
		t.Fatalf("it takes nothing any more after %d; it ended by itself: %v", len(acknowledged), c.Err())
	}
	try(t, syscall.Kill(must(cluster.Find(name))(t).PID, syscall.SIGKILL))
	<-gaveUp
	<-c.Done()

	again := start(t, cluster.Options{Name: name})
	there := map[string]bool{}
	for _, found := range must(clientFor(t, again.Config()).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}))(t).Items {
		there[found.Name] = len(found.Data["text"]) == 1000
	}
	lost := slices.DeleteFunc(acknowledged, func(name string) bool { return there[name] })
	if len(lost) > 0 {
		t.Errorf("acknowledged and lost: %q", lost)
	}
	after := awaitWorking(t, again)
	if after.Status.PodIP == before.Status.PodIP {
		t.Errorf("pods from before and after both have the address %s", after.Status.PodIP)
	}
}
