// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/testenv"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	request := &lens.Event{Request: &lens.Request{Verb: "patch", Resource: lens.Resource{Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "a", Name: "web"}}}
	for _, one := range []struct {
		filter Filter
		want   bool
	}{
		{Filter{}, true},
		{Filter{Verbs: []string{"get", "patch"}}, true},
		{Filter{Verbs: []string{"get"}}, false},
		{Filter{Resources: []string{"deployments"}}, true},
		{Filter{Resources: []string{"Deployments.apps"}}, true},
		{Filter{Resources: []string{"deployments/scale"}}, true},
		{Filter{Resources: []string{"deployments.extensions"}}, false},
		{Filter{Resources: []string{"deployments/status"}}, false},
		{Filter{Namespace: "a", Name: "web"}, true},
		{Filter{Namespace: "b"}, false},
		{Filter{Name: "other"}, false},
	} {
		if got := one.filter.Wants(request); got != one.want {
			t.Errorf("%+v: %v", one.filter, got)
		}
	}
}

// TestRun runs a program that talks to a real API server.
func TestRun(t *testing.T) {
	kubectl := filepath.Join(t.TempDir(), "kubectl") // the control plane is kubectl under that name
	if err := os.Symlink(testenv.ControlPlane(t), kubectl); err != nil {
		t.Fatal(err)
	}
	namespace := clustertest.Namespace(t)
	run := func(t *testing.T, script string) (Result, string) {
		t.Helper()
		dir := t.TempDir()
		var said strings.Builder
		result, err := Run(t.Context(), Options{
			Upstream: clustertest.Shared(t).Config(), Identity: "administrator", Namespace: namespace, Dir: dir, Recording: filepath.Join(dir, "recordings", "one.jsonl"),
			Command: []string{"sh", "-c", script}, Env: append(os.Environ(), "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH")),
			See: func(e *lens.Event, _ uint64) {
				if ShowWrites.Wants(e) && e.Request != nil {
					fmt.Fprintf(&said, "%s %s %d\n", e.Request.Verb, Place(e.Request), e.Request.Status)
				}
			},
			Unused: func() {},
		})
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(filepath.Join(dir, "recordings", "one.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		found, err := lens.ReadRecording(file, func(*lens.Event) error { return nil })
		if err != nil || found.Cut || len(found.Totals.Uses) != len(result.Totals.Uses) {
			t.Errorf("recorded is %+v, %v", found, err)
		}
		return result, said.String()
	}
	t.Run("writes and errors are shown", func(t *testing.T) {
		result, said := run(t, "kubectl create configmap a --from-literal=x=1 && kubectl create configmap a; kubectl delete configmap a; exit 3")
		want := fmt.Sprintf("create configmaps in %[1]s 409\n", namespace)
		if result.ExitCode != 3 || !strings.HasPrefix(said, fmt.Sprintf("create configmaps %s/a 201\n", namespace)) ||
			!strings.Contains(said, "409") || !strings.Contains(said, fmt.Sprintf("delete configmaps %s/a 200\n", namespace)) {
			t.Errorf("exit code %d, %s (like %s)", result.ExitCode, said, want)
		}
	})
	t.Run("a program that is not there", func(t *testing.T) {
		_, err := Run(t.Context(), Options{
			Upstream: clustertest.Shared(t).Config(), Dir: t.TempDir(), Recording: filepath.Join(t.TempDir(), "one.jsonl"), Command: []string{"/does/not/exist"},
			See: func(*lens.Event, uint64) {}, Unused: func() {},
		})
		if err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("the user interrupts it", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var begun atomic.Bool
		result, err := Run(ctx, Options{
			Upstream: clustertest.Shared(t).Config(), Namespace: namespace, Dir: t.TempDir(), Recording: filepath.Join(t.TempDir(), "one.jsonl"),
			Command: []string{"sh", "-c", "kubectl get configmaps --watch"}, Env: append(os.Environ(), "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH")),
			See: func(e *lens.Event, _ uint64) {
				if e.Request != nil && e.Request.Open && begun.CompareAndSwap(false, true) {
					cancel()
				}
			},
			Unused: func() {},
		})
		if err != nil || !begun.Load() || result.Totals.Last.IsZero() {
			t.Errorf("%+v, %v", result, err)
		}
	})
}
