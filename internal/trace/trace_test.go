// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		{Filter{Resources: []string{"deployments.apps/scale"}}, true},
		{Filter{Resources: []string{"deployments.apps/status"}}, false},
		{Filter{Resources: []string{"deployments.extensions/scale"}}, false},
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

// An operator that watches a resource and reads it from the API server all the same has a cache that it does not use.
func TestReadsThatBypassACache(t *testing.T) {
	t.Parallel()
	use := func(resource, verb string, count, unbounded uint64) *lens.Use {
		return &lens.Use{Resource: resource, Verb: verb, Count: count, Unbounded: unbounded}
	}
	var text strings.Builder
	err := Summary(&text, lens.Totals{Uses: []*lens.Use{
		use("roles", "get", 36, 0), use("roles", "list", 17, 16), use("roles", "watch", 1, 0), use("pods", "list", 1, 1), use("pods", "watch", 1, 0), use("secrets", "get", 10, 0),
	}})
	const want = "\n\nReads that no cache answers: secrets (10)\nReads that bypass a cache, although a watch could fill it: roles (36)\nLists without a limit: roles (16)\n"
	if err != nil || !strings.HasSuffix(text.String(), want) {
		t.Errorf("got %s, %v", text.String(), err)
	}
}

// TestSummaryOfOtherUsers has requests that an operator sends as itself and as another user.
func TestSummaryOfOtherUsers(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	err := Summary(&text, lens.Totals{Uses: []*lens.Use{{Resource: "secrets", Verb: "get", Count: 6}, {Resource: "secrets", Verb: "get", Count: 5, As: true}}})
	const want = "RESOURCE  VERB  COUNT  FAILED  NOTES\nsecrets   get   6      -       \nsecrets   get   5      -       as another user\n\nReads that no cache answers: secrets (11)\n"
	if err != nil || !strings.HasSuffix(text.String(), want) {
		t.Errorf("got %s, %v", text.String(), err)
	}
}

// The number of items is not known if the answer could not be decoded.
func TestItemsOfLists(t *testing.T) {
	t.Parallel()
	for undecoded, want := range map[string]bool{"": true, "the body is too large": false} {
		e := &lens.Event{Request: &lens.Request{Verb: "list", Status: 200, Resource: lens.Resource{Resource: "pods"}, Undecoded: undecoded}}
		if got := Line(e, e.At); strings.Contains(got, "0 items") != want {
			t.Errorf("undecoded because %q: %s", undecoded, got)
		}
	}
}

var errFull = errors.New("no space left on device")

// fullDisk is a recording that could not be written.
type fullDisk struct{}

func (fullDisk) Close() error { return errFull }

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
			Unused: func(uint64) {},
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
			See: func(*lens.Event, uint64) {}, Unused: func(uint64) {},
		})
		if err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
			t.Errorf("the error is %v", err)
		}
	})
	quick := func(t *testing.T, script string, change func(*Options)) (Result, string) {
		t.Helper()
		var said strings.Builder
		o := Options{
			Upstream: clustertest.Shared(t).Config(), Namespace: namespace, Dir: t.TempDir(), Recording: filepath.Join(t.TempDir(), "one.jsonl"),
			Command: []string{"sh", "-c", script}, Env: append(os.Environ(), "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH")),
			See: func(e *lens.Event, _ uint64) {
				if e.Process != nil && e.Process.Ended {
					fmt.Fprintln(&said, e.Process.How)
				}
			},
			Unused: func(refused uint64) { fmt.Fprintf(&said, "unused, %d refused\n", refused) },
		}
		if change != nil {
			change(&o)
		}
		result, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return result, said.String()
	}
	t.Run("a signal ends it", func(t *testing.T) {
		result, said := quick(t, "kubectl get configmaps; kill -9 $$", nil)
		if result.ExitCode != 128+9 || said != "was ended by signal 9 (killed)\n" {
			t.Errorf("exit code %d, %s", result.ExitCode, said)
		}
	})
	t.Run("it ignores its kubeconfig", func(t *testing.T) {
		if _, said := quick(t, "exit 0", nil); said != "unused, 0 refused\nexited with status 0\n" {
			t.Error(said)
		}
	})
	t.Run("it has another credential", func(t *testing.T) {
		_, said := quick(t, `sed 's/token: .*/token: other/' "$KUBECONFIG" > "$KUBECONFIG.other"; kubectl --kubeconfig "$KUBECONFIG.other" get --raw /api; exit 0`, nil)
		if !strings.HasPrefix(said, "unused, ") || strings.HasPrefix(said, "unused, 0") {
			t.Error(said)
		}
	})
	// A program that prefers the configuration of its pod must not reach the cluster in which this one runs.
	t.Run("in a pod of another cluster", func(t *testing.T) {
		result, said := quick(t, `kubectl get --raw /api && test -z "$KUBERNETES_SERVICE_HOST$KUBERNETES_SERVICE_PORT"`, func(o *Options) {
			o.Env = append(o.Env, "KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=443")
		})
		if result.ExitCode != 0 {
			t.Error(said)
		}
	})
	// The program, its exit code and the counts do not depend on the recording.
	t.Run("the recording cannot be written", func(t *testing.T) {
		result, _ := quick(t, "kubectl get configmaps; exit 3", func(o *Options) {
			o.record = func(*lens.Stream) (io.Closer, error) { return fullDisk{}, nil }
		})
		if result.ExitCode != 3 || len(result.Totals.Uses) == 0 || !errors.Is(result.Incomplete, errFull) {
			t.Errorf("%+v", result)
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
			Unused: func(uint64) {},
		})
		if err != nil || !begun.Load() || result.Totals.Last.IsZero() {
			t.Errorf("%+v, %v", result, err)
		}
	})
}
