// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/hint"
)

// TestWorldOfAKindThatChanges is about an operator with a conversion webhook: its address changes, and the API server then ends all
// watches of the kind.
func TestWorldOfAKindThatChanges(t *testing.T) {
	objects, namespace := connect(t), clustertest.Namespace(t)
	crd := frigates(t, objects, namespace)
	victory, kept := aFrigate(crd, namespace, "victory")
	create(t, objects, victory)
	w := follow(t)
	before, _ := w.Changes(0)
	endpoint := "https://127.0.0.1:1/convert"
	old := crd.DeepCopy()
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &endpoint},
	}}
	// A patch, because controllers of the cluster write its conditions meanwhile.
	if err := objects.Patch(t.Context(), crd, client.MergeFrom(old)); err != nil {
		t.Fatal(err)
	}
	surprise, came := aFrigate(crd, namespace, "surprise")
	create(t, objects, surprise)
	await(t, w, came.String()+" is there", func(s State) bool { return s[came] != nil })
	if err := objects.Delete(t.Context(), victory); err != nil {
		t.Fatal(err)
	}
	await(t, w, kept.String()+" is gone", func(s State) bool { return s[kept] == nil })
	var got []string
	for _, c := range since(w, before) {
		if c.Key.Resource == "frigates" {
			got = append(got, c.Type+" "+c.Key.Name)
		}
	}
	if want := []string{"ADDED surprise", "DELETED victory"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func since(w *World, number int) []Change {
	_, changes := w.Changes(number)
	return changes
}

// pods are the objects of a watch, NAME/UID/VERSION.
func pods(names ...string) string {
	var events strings.Builder
	for _, one := range names {
		part := strings.Split(one, "/")
		fmt.Fprintf(&events, `{"type":"ADDED","object":{"metadata":{"name":%q,"uid":%q,"resourceVersion":%q}}}`+"\n", part[0], part[1], part[2])
	}
	return events.String()
}

// known is the event after what is there.
const known = `{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"

// serving is a world, and a server that answers its first watches like this and keeps the last one open.
func serving(t *testing.T, answers ...string) *World {
	t.Helper()
	var asked atomic.Int32
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(asked.Add(1))
		_, _ = io.WriteString(w, answers[min(n, len(answers))-1])
		if n >= len(answers) {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-over:
			}
		}
	}))
	w := &World{client: server.Client(), host: server.URL, objects: map[Key]*unstructured.Unstructured{}, news: make(chan struct{})}
	t.Cleanup(func() {
		close(over)
		w.work.Wait()
		server.Close()
	})
	return w
}

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// TestWatchesThatEnd has watches that end. Each starts again, and reports what changed in the meantime.
func TestWatchesThatEnd(t *testing.T) {
	before := pods("same/1/1", "changed/2/2", "replaced/3/3", "gone/4/4") + known
	after := pods("same/1/1", "changed/2/5", "replaced/6/6", "new/7/7") + known
	for about, answers := range map[string][]string{
		"at once":             {before, after},
		"in the middle":       {before + `{"type":"ADDED","obj`, after},
		"with an error":       {before + `{"type":"ERROR","object":{"reason":"Expired","message":"too old resource version"}}`, after},
		"before all is known": {pods("same/1/1"), before, pods("new/7/7"), after},
	} {
		t.Run(about, func(t *testing.T) {
			w := serving(t, answers...)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if err := <-w.follow(ctx, podResource, "Pod"); err != nil {
				t.Fatal(err)
			}
			await(t, w, "a new pod", func(s State) bool { return s[Key{Resource: "pods", Kind: "Pod", Name: "new"}] != nil })
			var got []string
			for _, c := range since(w, 4) {
				got = append(got, c.Type+" "+c.Key.Name)
			}
			slices.Sort(got)
			if want := "ADDED new, ADDED replaced, DELETED gone, DELETED replaced, MODIFIED changed"; strings.Join(got, ", ") != want {
				t.Errorf("got %q, want %s", got, want)
			}
		})
	}
}

// TestAnInterruptionIsNoRest is about a change that a watch cannot tell: nothing may seem to be quiet.
func TestAnInterruptionIsNoRest(t *testing.T) {
	w := &World{objects: map[Key]*unstructured.Unstructured{}, news: make(chan struct{})}
	f := &following{world: w, resource: podResource, kind: "Pod", tell: func(error) {}}
	f.end(errEnded) // it was not known before
	if _, last, _ := w.News(); !last.IsZero() {
		t.Errorf("a watch that was never begun counts as a change at %s", last)
	}
	f.see(t.Context(), State{})
	before := time.Now()
	f.end(errEnded)
	f.end(errNotYet)
	if _, last, _ := w.News(); last.Before(before) {
		t.Error("nothing is watched, and seems to be quiet")
	}
	f.see(t.Context(), State{})
	if w.blind != 0 {
		t.Errorf("%d watches are interrupted", w.blind)
	}
	if _, last, _ := w.News(); last.After(time.Now()) || last.Before(before) {
		t.Errorf("the last change was at %s, want when the watch was begun again", last)
	}
}

// TestWhatMayPass is about refusals that end, and about what to say if they do not.
func TestWhatMayPass(t *testing.T) {
	broken := errors.New("connection refused")
	webhook := &answerError{"the API server answered 500 Internal Server Error: conversion webhook failed"}
	for about, test := range map[string]struct {
		err   error
		known bool
		want  bool
	}{
		"it begins to be served":                {errNotYet, false, true},
		"it is known later":                     {errNotThere, false, true},
		"it ends early":                         {errEnded, false, true},
		"it ends":                               {fmt.Errorf("%w: unexpected EOF", errEnded), true, true},
		"a webhook does not convert yet":        {webhook, false, false},
		"a webhook does not convert for a time": {webhook, true, true},
		"there is no server":                    {broken, true, false},
	} {
		f := &following{known: test.known, resource: schema.GroupVersionResource{Group: "sea.example.com", Version: "v1", Resource: "ships"}, began: time.Now(), refused: test.err}
		if got := f.mayPass(test.err); got != test.want {
			t.Errorf("%s: got %v", about, got)
		}
		failure := f.failure()
		var hinted *hint.Error
		if errors.As(failure, &hinted) != test.known || !errors.Is(failure, test.err) || !strings.HasPrefix(failure.Error(), "watching ships.sea.example.com ") {
			t.Errorf("%s: got %v", about, failure)
		}
	}
}

// TestWorldOfABusyServer is about an API server whose cache is behind: it says so in the watch, and may be asked again.
func TestWorldOfABusyServer(t *testing.T) {
	for about, test := range map[string]struct{ events, want string }{
		"not yet": {`{"type":"ERROR","object":{"kind":"Status","reason":"Timeout","message":"Too large resource version: 117, current: 106"}}`, errNotYet.Error()},
		"later": {`{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}
			{"type":"ERROR","object":{"kind":"Status","reason":"Timeout","message":"it ends"}}`, "it ends"},
		"something else": {`{"type":"ERROR","object":{"kind":"Status","reason":"Expired","message":"too old"}}`, "too old"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, test.events) }))
		w := &World{client: server.Client(), host: server.URL, objects: map[Key]*unstructured.Unstructured{}, news: make(chan struct{})}
		err := w.read(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod", func(State) {})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", about, err, test.want)
		}
		server.Close()
	}
}

// TestSharedObjectsStayTheOperators is about Endpoints that an operator made, and of which the control plane has written all fields
// since. Otherwise they would seem to be left behind when they are deleted.
func TestSharedObjectsStayTheOperators(t *testing.T) {
	event := func(kind, name, manager string) string {
		return fmt.Sprintf(`{"type":%q,"object":{"kind":"Endpoints","metadata":{"name":%q,"managedFields":[{"manager":%q}]}}}`, kind, name, manager)
	}
	events := strings.Join([]string{
		`{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}`, event("ADDED", "other", "kube-controller-manager"),
		event("ADDED", "own", "manager"), event("MODIFIED", "own", "kube-controller-manager"), event("DELETED", "own", "kube-controller-manager"),
	}, "\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, events) }))
	defer server.Close()
	w := &World{client: server.Client(), host: server.URL, objects: map[Key]*unstructured.Unstructured{}, news: make(chan struct{})}
	if err := w.read(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "endpoints"}, "Endpoints", func(State) {}); !errors.Is(err, errEnded) {
		t.Fatal(err)
	}
	var got []string
	for _, c := range since(w, 0) {
		got = append(got, c.Type+" "+c.Key.Name)
	}
	if want := []string{"ADDED own", "MODIFIED own", "DELETED own"}; !slices.Equal(got, want) || len(w.State()) > 0 {
		t.Errorf("got %q and %v, want %q", got, w.State(), want)
	}
}

// TestSharedObjectsStayTheOperatorsInCopies is about a copy of a cluster with Endpoints that an operator made, and of which the control
// plane has written all fields since: nothing in the copy shows whose they are.
func TestSharedObjectsStayTheOperatorsInCopies(t *testing.T) {
	endpoints := func(name, uid string) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"kind":"Endpoints","metadata":{"name":%q,"uid":%q,"managedFields":[{"manager":"kube-controller-manager"}]}}}`, name, uid)
	}
	key := func(name string) Key { return Key{Resource: "endpoints", Kind: "Endpoints", Name: name} }
	w := serving(t, strings.Join([]string{endpoints("own", "1"), endpoints("other", "2"), endpoints("replaced", "4"), known, endpoints("other", "2")}, "\n"))
	w.earlier = State{}
	for name, uid := range map[string]types.UID{"own": "1", "replaced": "3", "gone": "5"} {
		w.earlier[key(name)] = &unstructured.Unstructured{Object: map[string]any{}}
		w.earlier[key(name)].SetUID(uid)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := <-w.follow(ctx, schema.GroupVersionResource{Version: "v1", Resource: "endpoints"}, "Endpoints"); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(maps.Keys(w.State())); !slices.Equal(got, []Key{key("own")}) {
		t.Errorf("got %v, want those that the operator made", got)
	}
}

// TestWorldOfAKindThatGoes is about discovery that is behind: it names a kind whose CRD was deleted.
func TestWorldOfAKindThatGoes(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" || r.URL.Path != "/apis/sea.example.com/v1" {
			http.NotFound(w, r)
			return
		}
		list := metav1.APIResourceList{GroupVersion: "sea.example.com/v1", APIResources: []metav1.APIResource{{Name: "boats", Kind: "Boat"}}}
		if asked.Add(1) < 3 {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: "ships", Kind: "Ship"})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	w := &World{client: server.Client(), host: server.URL, kinds: discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL}), news: make(chan struct{})}
	ready := w.follow(t.Context(), schema.GroupVersionResource{Group: "sea.example.com", Version: "v1", Resource: "ships"}, "Ship")
	if err := <-ready; err != nil || w.failed != nil || asked.Load() != 3 {
		t.Errorf("got %v and %v after discovery was asked %d times", err, w.failed, asked.Load())
	}
}
