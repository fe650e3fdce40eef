// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/test/browser/chromium"
)

// patience is how long a cluster may take for what should happen at once.
const patience = 90 * time.Second

// opdock is the program as users have it, with a home of its own.
type opdock struct {
	program string
	home    string
}

func buildOpdock(t *testing.T) *opdock {
	t.Helper()
	if os.Getenv("OPDOCK_CONTROLPLANE") == "" {
		t.Skip("OPDOCK_CONTROLPLANE is not set: this test needs the control plane; make test sets it")
	}
	o := &opdock{program: filepath.Join(t.TempDir(), "opdock"), home: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", o.program, "./cmd/opdock")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building opdock: %v\n%s", err, out)
	}
	return o
}

// command outlives the test's context, so that it can be ended in order.
func (o *opdock) command(arguments ...string) *exec.Cmd {
	command := exec.Command(o.program, arguments...)
	command.Env = append(os.Environ(), "OPDOCK_HOME="+o.home)
	return command
}

// run runs the fleet until the test ends and returns where its page is.
func (o *opdock) run(t *testing.T) string {
	t.Helper()
	var screen bytes.Buffer
	run := o.command("run", "--name", "page", "--samples", "nginx-app,store")
	run.Stdout, run.Stderr = &screen, &screen
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Ctrl-C comes from the test alone
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	note := filepath.Join(o.home, "clusters", "page", page.FileName)
	t.Cleanup(func() {
		_ = run.Process.Signal(os.Interrupt)
		if err := <-ended; err != nil {
			t.Errorf("opdock run: %v\n%s", err, &screen)
		}
		if _, err := os.Stat(note); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", note, err)
		}
	})
	for until := time.Now().Add(patience); time.Now().Before(until); {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("opdock run has ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		var file page.File
		if data, err := os.ReadFile(note); err == nil && json.Unmarshal(data, &file) == nil {
			return file.Address
		}
	}
	t.Fatal("opdock run has not said where its page is")
	return ""
}

// A user scales an application of the fleet and sees what follows, down to the pods.
func TestTheRealFleet(t *testing.T) {
	o := buildOpdock(t)
	p := look(t, o.run(t), chromium.Options{})
	await(t, p, "globalThis.opdock && opdock.forest.roots.some((r) => r.object.name === 'store' && r.object.state === 'good') && "+
		"opdock.forest.roots.some((r) => r.object.name === 'nginx-app' && r.object.state === 'good')")
	// An object that a KAPP has made leads back to the KAPP's reconcile.
	await(t, p, "opdock.store.passes.some((p) => p.controller === 'appservice' && p.causes.some((c) => c.from?.pass?.controller === 'kapp'))")
	before := get[int](t, p, "opdock.store.last")
	size := o.command("kubectl", "--name", "page", "patch", "appservice", "nginx-app", "--type=merge", "-p", `{"spec":{"size":4}}`)
	if out, err := size.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := `opdock.store.passes.find((p) => p.id > ` + number(float64(before)) + ` && p.controller === 'appservice' &&
	  p.causes.some((c) => c.raw.changes?.some((f) => f.path === 'spec.size')))`
	await(t, p, found)
	do(t, p, "opdock.open("+found+")")
	expect(t, p, "details", "AppService nginx-app", "spec.size", "kubectl", "Deployment nginx-app")
	await(t, p, "opdock.forest.byKey.get('Deployment/apps/default/nginx-app').object.status.startsWith('4/4')")
	do(t, p, "opdock.close(); opdock.choose(opdock.forest.byKey.get('AppService/app.example.com/default/nginx-app'))")
	await(t, p, "opdock.timeline.painter.drawn.edges > 3 && opdock.timeline.painter.drawn.passes > 1")
	expect(t, p, "tree", "Running", "4/4 available")
}
