// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/test/browser/chromium"
)

// patience is how long a cluster may take for what should happen at once.
const patience = 90 * time.Second

// opdock is the program as users have it, with a home of its own.
type opdock struct {
	program string
	home    string
}

func newOpdock(t *testing.T) *opdock {
	t.Helper()
	testenv.ControlPlane(t)
	return &opdock{program: testenv.Program(t), home: t.TempDir()}
}

// command outlives the test's context, so that it can be ended in order.
func (o *opdock) command(arguments ...string) *exec.Cmd {
	command := exec.Command(o.program, arguments...)
	command.Env = append(os.Environ(), "OPDOCK_HOME="+o.home)
	return command
}

// serve runs opdock with a page about a cluster until the test ends, and returns where the page is.
func (o *opdock) serve(t *testing.T, cluster string, arguments ...string) string {
	t.Helper()
	var screen testenv.Buffer
	run := o.command(append(arguments, "--name", cluster)...)
	run.Stdout, run.Stderr = &screen, &screen
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Ctrl-C comes from the test alone
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	folder := filepath.Join(o.home, "clusters", cluster)
	t.Cleanup(func() {
		_ = run.Process.Signal(os.Interrupt)
		if err := <-ended; err != nil || t.Failed() {
			t.Errorf("opdock %s: %v\n%s", arguments[0], err, &screen)
		}
		if notes, err := filepath.Glob(filepath.Join(folder, "page*")); err != nil || len(notes) > 0 {
			t.Errorf("left behind: %v (%v)", notes, err)
		}
	})
	for until := time.Now().Add(patience); time.Now().Before(until); {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("opdock %s has ended: %v", arguments[0], err)
		case <-time.After(50 * time.Millisecond):
		}
		// The page can be found before the start is over, and an interrupted start is a failure.
		pages, _, err := page.Find(folder)
		if err == nil && len(pages) > 0 && strings.Contains(screen.String(), "Live view: ") {
			return pages[0].Address
		}
	}
	t.Fatalf("opdock %s has not said where its page is", arguments[0])
	return ""
}

// A user scales an application of the fleet and sees what follows, down to the pods.
func TestTheRealFleet(t *testing.T) {
	o := newOpdock(t)
	p := look(t, o.serve(t, "page", "run", "--samples", "nginx-app,store"), chromium.Options{})
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
