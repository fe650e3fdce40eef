// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/testenv"
)

// patience is how long something may take that should happen at once.
const patience = time.Minute

// server is the control plane that these tests share.
func server(t *testing.T) *Server {
	t.Helper()
	testenv.ControlPlane(t)
	s, err := Connect(clustertest.Shared(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// deployed applies objects for a test.
func deployed(t *testing.T, s *Server, objects []*unstructured.Unstructured, o Options) string {
	t.Helper()
	t.Cleanup(func() {
		// Not the test's context, which has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		o.DryRun = false
		if _, err := s.Delete(ctx, objects, o); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return applied(t, s, objects, o)
}

func applied(t *testing.T, s *Server, objects []*unstructured.Unstructured, o Options) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if o.Manager == "" {
		o.Manager = ProjectManager
	}
	outcomes, err := s.Apply(ctx, objects, o)
	if err != nil {
		t.Fatal(err)
	}
	return actions(outcomes)
}

func actions(outcomes []Outcome) string {
	var all []string
	for _, one := range outcomes {
		all = append(all, one.Kind+" "+string(one.Action))
	}
	return strings.Join(all, ", ")
}

func exists(t *testing.T, s *Server, object *unstructured.Unstructured) bool {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := s.client.Get(t.Context(), client.ObjectKeyFromObject(object), live)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// impatient returns a server, and a context whose deadline passes when that server has answered the first watch: what is waited
// for then never happens, and everything before takes the time that it needs.
func impatient(t *testing.T) (*Server, context.Context) {
	t.Helper()
	testenv.ControlPlane(t)
	ctx := &timedOut{Context: t.Context(), done: make(chan struct{})}
	config := rest.CopyConfig(clustertest.Shared(t).Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if request.URL.Query().Get("watch") != "" {
				ctx.once.Do(func() { close(ctx.done) })
			}
			return response, err
		})
	})
	s, err := Connect(config)
	if err != nil {
		t.Fatal(err)
	}
	return s, ctx
}

// timedOut is a context whose deadline passes when a channel is closed.
type timedOut struct {
	context.Context

	done chan struct{}
	once sync.Once
}

// Done implements context.Context.
func (c *timedOut) Done() <-chan struct{} { return c.done }

// Err implements context.Context.
func (c *timedOut) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// workloads are the objects that are waited for.
func workloads(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return project.Workloads(objects)
}

func all(action Action, objects []*unstructured.Unstructured) string {
	var result []string
	for _, object := range objects {
		result = append(result, object.GetKind()+" "+string(action))
	}
	return strings.Join(result, ", ")
}
