// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func calls(t *testing.T, log string) []string {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func TestBuildFromCheckout(t *testing.T) {
	isolate(t)
	log := useFakeGo(t, "")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "/some/go.work")
	root := checkoutAt(t)
	t.Chdir(filepath.Join(root, "controlplane", "deep"))
	out := filepath.Join(t.TempDir(), "new", "cp")

	var seen []BuildProgress
	if err := BuildBinary(t.Context(), out, func(p BuildProgress) { seen = append(seen, p) }); err != nil {
		t.Fatal(err)
	}
	if err := checkExecutable(out); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(out + ".building*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	got := calls(t, log)
	if len(got) != 2 || !strings.HasPrefix(got[0], "list -deps ") || !strings.HasPrefix(got[1], "build -v -o ") {
		t.Fatalf("calls:\n%s", strings.Join(got, "\n"))
	}
	for _, call := range got {
		for _, want := range []string{
			"GOWORK=off ", "CGO_ENABLED=0 ", "GOFLAGS=-mod=mod ", "./cmd/opdock-controlplane ",
			"-X k8s.io/component-base/version.gitVersion=" + KubernetesVersion, "in " + filepath.Join(root, "controlplane"),
		} {
			if !strings.Contains(call, want) {
				t.Errorf("%q is missing in %s", want, call)
			}
		}
	}
	var story []string
	for _, p := range seen {
		if line := fmt.Sprintf("%s %d/%d", p.Message, p.Done, p.Total); !slices.Contains(story, line) {
			story = append(story, line)
		}
		if (p.Expected > 0) != (p.Done > 0) {
			t.Errorf("expected time at %d packages is %v", p.Done, p.Expected)
		}
	}
	want := []string{
		"listing the packages to compile 0/0", "downloading k8s.io/api v0.36.3 0/0",
		"compiling 0/3", "compiling 1/3", "compiling 2/3", "linking 3/3",
	}
	if !slices.Equal(story, want) {
		t.Errorf("progress is %q\nwant %q", story, want)
	}
}

func TestBuildFromProxy(t *testing.T) {
	isolate(t)
	log := useFakeGo(t, "")
	module := t.TempDir()
	t.Setenv(goModuleEnv, module)
	out := filepath.Join(t.TempDir(), "cp")
	always := func() bool { return false }
	done := func() error { return nil }
	if err := buildOnce(t.Context(), &source{version: "v0.3.0"}, out, nil, always, done); err != nil {
		t.Fatal(err)
	}
	got := calls(t, log)
	if len(got) != 3 || !strings.HasPrefix(got[0], "mod download -json github.com/opdock/opdock/controlplane@v0.3.0 ") ||
		!strings.HasSuffix(got[1], " in "+module) || !strings.HasSuffix(got[2], " in "+module) {
		t.Errorf("calls:\n%s", strings.Join(got, "\n"))
	}
	t.Setenv(goBehaviourEnv, "offline")
	err := buildOnce(t.Context(), &source{version: "v0.3.0"}, out, nil, always, done)
	if err == nil || !strings.Contains(err.Error(), "no route to host") || !strings.Contains(err.Error(), "@v0.3.0") {
		t.Errorf("error is %v", err)
	}
}

func TestBuildFails(t *testing.T) {
	cases := map[string]string{"broken": "undefined: Pod", "list fails": "k8s.io/api: no route to host"}
	for behaviour, says := range cases {
		t.Run(behaviour, func(t *testing.T) {
			isolate(t)
			useFakeGo(t, behaviour)
			t.Chdir(checkoutAt(t))
			out := program(t, filepath.Join(t.TempDir(), "cp"))
			err := BuildBinary(t.Context(), out, nil)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("error is %v, want one with %q", err, says)
			}
			if data, _ := os.ReadFile(out); string(data) != "#!/bin/sh\n" {
				t.Errorf("the old binary is now %q", data)
			}
			if left, _ := filepath.Glob(out + ".building*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	t.Run("no go", func(t *testing.T) {
		isolate(t)
		t.Setenv("PATH", t.TempDir())
		t.Chdir(checkoutAt(t))
		_, err := Start(t.Context(), Options{})
		var noGo *NoGoError
		if !errors.As(err, &noGo) || !strings.Contains(err.Error(), binaryEnv) || !strings.Contains(err.Error(), "install Go") {
			t.Errorf("error is %v", err)
		}
	})
}

func TestBuildCancelled(t *testing.T) {
	isolate(t)
	useFakeGo(t, "slow")
	t.Chdir(checkoutAt(t))
	ctx, cancel := context.WithCancel(t.Context())
	err := BuildBinary(ctx, filepath.Join(t.TempDir(), "cp"), func(p BuildProgress) {
		if p.Done == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestBuildsAtOnceAreOne(t *testing.T) {
	isolate(t)
	log := useFakeGo(t, "")
	t.Chdir(checkoutAt(t))
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			path, err := EnsureBinary(t.Context(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			if err := checkExecutable(path); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := calls(t, log); len(got) != 2 {
		t.Errorf("calls:\n%s", strings.Join(got, "\n"))
	}
}

func TestBuildWaitsForItsTurn(t *testing.T) {
	isolate(t)
	log := useFakeGo(t, "")
	t.Chdir(checkoutAt(t))
	out := filepath.Join(t.TempDir(), "cp")
	turn, err := awaitTurn(t.Context(), out+".lock", startTracking(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer turn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err = BuildBinary(ctx, out, func(p BuildProgress) {
		if strings.Contains(p.Message, "another process") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	// The other one finishes while this one waits.
	err = BuildBinary(t.Context(), out, func(p BuildProgress) {
		if strings.Contains(p.Message, "another process") && !exists(out) {
			program(t, out)
			future := time.Now().Add(time.Second)
			if err := os.Chtimes(out, future, future); err != nil {
				t.Error(err)
			}
			turn.Close()
		}
	})
	if err != nil {
		t.Error(err)
	}
	if got := calls(t, log); len(got) != 1 || got[0] != "" {
		t.Errorf("it was built again:\n%s", strings.Join(got, "\n"))
	}
}

func TestIsPackage(t *testing.T) {
	for line, want := range map[string]bool{
		"fmt": true, "k8s.io/api/core/v1": true, "vendor/golang.org/x/net/idna": true,
		"": false, "# k8s.io/api": false, "go: downloading x v1": false, "./a.go:1:2: undefined": false, "\tnote": false,
	} {
		if got := isPackage(line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestExpect(t *testing.T) {
	cases := []struct {
		before, compiling time.Duration
		done, total       int
		want              time.Duration
	}{
		{5 * time.Second, 0, 0, 100, 0},
		{0, time.Minute, 0, 0, 0},
		{5 * time.Second, time.Minute, 20, 100, 5*time.Minute + 5*time.Second},
		{0, time.Minute, 100, 100, time.Minute},
		{0, time.Minute, 120, 100, time.Minute},
	}
	for _, c := range cases {
		if got := expect(c.before, c.compiling, c.done, c.total); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

func TestBuildProgressString(t *testing.T) {
	for want, p := range map[string]BuildProgress{
		"looking, 2s": {Message: "looking", Elapsed: 1600 * time.Millisecond},
		"compiling, 20 of 100 packages, 1m5s of about 5m0s": {Message: "compiling", Done: 20, Total: 100, Elapsed: 65 * time.Second, Expected: 5 * time.Minute},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
