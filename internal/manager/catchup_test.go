// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// behind is a client whose cache never has what was written.
type behind struct {
	client.Client
	fails error // of reads that do not wait
}

func (b *behind) wait(ctx context.Context, not bool) error {
	if not {
		return b.fails
	}
	<-ctx.Done()
	return fmt.Errorf("waiting for the cache: %w", ctx.Err())
}

func (b *behind) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, options ...client.GetOption) error {
	return b.wait(ctx, (&client.GetOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency)
}

func (b *behind) List(ctx context.Context, _ client.ObjectList, options ...client.ListOption) error {
	return b.wait(ctx, (&client.ListOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency)
}

func (b *behind) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }

func (b *behind) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(object, clientgoscheme.Scheme)
}

// A read that has timed out does not wait again, until the next write of the object or, for lists, of the kind.
func TestReadsWaitOnceForEachWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &catchingUp{Client: &behind{}, timeout: catchUpTimeout}
		pod := func(name string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		}
		get := func(name string) error {
			return c.Get(t.Context(), client.ObjectKeyFromObject(pod(name)), &corev1.Pod{})
		}
		list := func(string) error { return c.List(t.Context(), &corev1.PodList{}) }
		write := func(name string) error { return c.Delete(t.Context(), pod(name)) }
		for i, step := range []struct {
			do    func(string) error
			name  string
			waits bool
		}{
			{get, "a", true}, {get, "a", false}, {get, "b", true}, {list, "", true}, {list, "", false},
			{write, "b", false}, {get, "a", false}, {get, "b", true}, {get, "b", false}, {list, "", true}, {list, "", false},
		} {
			began := time.Now()
			if err := step.do(step.name); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began) > 0; waited != step.waits {
				t.Errorf("step %d waited: %v", i, waited)
			}
		}
	})
}

func TestReadsDoNotWaitForever(t *testing.T) {
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		deadline time.Duration // of the caller
		fails    error
		want     error
		took     time.Duration
	}{
		"the cache does not catch up": {time.Minute, nil, nil, catchUpTimeout},
		"and cannot be read":          {time.Minute, refused, refused, catchUpTimeout},
		"the caller is less patient":  {time.Second, nil, context.DeadlineExceeded, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			c := &catchingUp{Client: &behind{fails: test.fails}, timeout: catchUpTimeout}
			for verb, read := range map[string]func(context.Context) error{
				"get":  func(ctx context.Context) error { return c.Get(ctx, client.ObjectKey{Name: "a"}, &corev1.Pod{}) },
				"list": func(ctx context.Context) error { return c.List(ctx, &corev1.PodList{}) },
			} {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
					defer cancel()
					began := time.Now()
					if err := read(ctx); !errors.Is(err, test.want) {
						t.Errorf("%s: got %v, want %v", verb, err, test.want)
					}
					if took := time.Since(began); took != test.took {
						t.Errorf("%s: it took %s, want %s", verb, took, test.took)
					}
				})
			}
		})
	}
}
