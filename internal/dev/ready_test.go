// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/project"
)

func TestReconcilingIsReadFromTheLog(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		want bool
	}{
		"nothing yet": {"INFO setup starting manager", false},
		"one controller": {`INFO Starting EventSource {"controller": "captain"}
INFO Starting Controller {"controller": "captain"}
INFO Starting workers {"controller": "captain", "worker count": 1}`, true},
		"one of two": {`INFO Starting EventSource {"controller": "captain"}
INFO Starting EventSource {"controller": "mate"}
INFO Starting Controller {"controller": "mate"}
INFO Starting workers {"controller": "mate"}`, false},
		"two of two": {`INFO Starting EventSource {"controller": "captain"}
INFO Starting EventSource {"controller": "mate"}
INFO Starting workers {"controller": "mate"}
INFO Starting workers {"controller": "captain"}`, true},
		"JSON": {`{"level":"info","msg":"Starting Controller","controller":"a"}
{"level":"info","msg":"Starting workers","controller":"a","worker count":1}`, true},
		"JSON, still waiting for caches": {`{"level":"info","msg":"Starting EventSource","controller":"a"}
{"level":"info","msg":"Starting Controller","controller":"a"}`, false},
		"by logger, one of two": {`{"level":"info","logger":"controller.captain","msg":"Starting EventSource","reconciler kind":"Captain"}
{"level":"info","logger":"controller.mate","msg":"Starting Controller","reconciler kind":"Mate"}
{"level":"info","logger":"controller.mate","msg":"Starting workers","reconciler kind":"Mate","worker count":1}`, false},
		"by logger, as text": {"INFO\tcontroller-runtime.manager.controller.captain\tStarting EventSource\t{}\n" +
			"INFO\tcontroller-runtime.manager.controller.mate\tStarting Controller\t{}\nINFO\tcontroller-runtime.manager.controller.mate\tStarting workers\t{}", false},
		"by logger, two of two": {"INFO\tcontroller.captain\tStarting EventSource\t{}\nINFO\tcontroller.mate\tStarting Controller\t{}\n" +
			"INFO\tcontroller.mate\tStarting workers\t{}\nINFO\tcontroller.captain\tStarting workers\t{}", true},
		"as text":                {"level=INFO msg=\"Starting Controller\" controller=a\nlevel=INFO msg=\"Starting workers\" controller=a", true},
		"client-go's example":    {"I0101 Starting Foo controller\nI0101 Waiting for informer caches to sync\nI0101 Starting workers count=2\nI0101 Started workers", true},
		"only stopping":          {"INFO Shutdown signal received, waiting for all workers to finish", false},
		"waiting for the leader": {"I0101 attempting to acquire leader lease default/x...", false},
		"waiting, newer":         {`{"level":"info","msg":"Attempting to acquire leader lease...","lock":"default/x"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReadiness()
			for line := range strings.Lines(test.log) {
				r.read(line)
			}
			got := false
			select {
			case <-r.workersRun:
				got = true
			default:
			}
			if got != test.want {
				t.Errorf("got %t", got)
			}
			if lease := r.wantedLease(); r.waits() && lease != "default/x" {
				t.Errorf("the lease is %q", lease)
			}
			if leader := strings.Contains(test.log, "lease"); r.waits() != leader {
				t.Errorf("waits for a lease: %t", r.waits())
			}
		})
	}
}

// A controller may be set up when others run already, for example once there is a certificate.
func TestControllersThatDoNotStart(t *testing.T) {
	r := newReadiness()
	for _, step := range []struct {
		line string
		idle []string
	}{
		{`INFO Starting EventSource {"controller": "captain"}`, []string{"captain"}},
		{`INFO Starting workers {"controller": "captain"}`, nil},
		{`INFO Starting EventSource {"controller": "mate"}`, []string{"mate"}},
		{`INFO Starting EventSource {"controller": "cook"}`, []string{"cook", "mate"}},
		{`INFO Starting workers {"controller": "mate"}`, []string{"cook"}},
	} {
		r.read(step.line)
		if got := r.idle(); !slices.Equal(got, step.idle) {
			t.Errorf("after %s: %q", step.line, got)
		}
	}
}

func TestMissingKindsAreReadFromTheLog(t *testing.T) {
	r := newReadiness()
	for _, line := range []string{
		`ERROR if kind is a CRD, it should be installed before calling Start {"error": "no matches for kind \"Certificate\" in version \"cert-manager.io/v1\""}`,
		`ERROR if kind is a CRD, it should be installed before calling Start {"error": "no matches for kind \"Certificate\" in version \"cert-manager.io/v1\""}`,
		`E1116 reflector.go:125] Failed to list *v1.Foo: the server could not find the requested resource (get foos.sample.example.com)`,
		`no matches for kind "Pod" in version "v2"`,
		`E1117 main.go:109] "failed to setup indexes" err="failed to get API group resources: unable to retrieve the complete list of server APIs: ipam.cluster.x-k8s.io/v1beta1: the server could not find the requested resource" logger="setup"`,
	} {
		r.read(line)
	}
	want := []project.Wanted{{Group: "cert-manager.io", Kind: "Certificate"}, {Group: "sample.example.com", Resource: "foos"}, {Group: "ipam.cluster.x-k8s.io", Version: "v1beta1"}}
	if got := r.missing(); !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	select {
	case <-r.lacks:
	default:
		t.Error("the channel received nothing")
	}
	r.read(`no matches for kind "Issuer" in version "cert-manager.io/v1"`)
	select {
	case <-r.lacks:
	default:
		t.Error("the channel received nothing about another kind")
	}
}

func TestWatchedNamespacesAreReadFromTheLog(t *testing.T) {
	for line, want := range map[string][]string{
		"INFO\tWatching namespace\t{\"controller\": \"x\", \"namespace\": \"a\"}":           {"a"},
		`INFO watch namespace configured {"watchNamespace": "a"}`:                           {"a"},
		`INFO watch namespace configured {"controller": "x"}`:                               nil,
		"INFO\tWatching namespace harbour\t{\"version\": \"1\"}":                            {"harbour"},
		"INFO\tWatching all namespaces\t{\"version\": \"1\"}":                               nil,
		"INFO\tWatching namespaces all\t{\"version\": \"1\"}":                               nil,
		"INFO\tWatching namespace\t{\"version\": \"1\"}":                                    nil,
		"INFO\tWatching namespace changes of harbour\t{\"version\": \"1\"}":                 nil,
		"INFO\tWatching namespaces of Frigates\t{\"version\": \"1\"}":                       nil,
		`{"level":"info","msg":"Watching namespace harbour","version":"1"}`:                 {"harbour"},
		`{"version":"1","msg":"Watching namespace(s): a,b"}`:                                {"a", "b"},
		`{"msg":"Watching all namespaces","version":"1"}`:                                   nil,
		`INFO setup Watching namespace(s) harbour`:                                          {"harbour"},
		`{"level":"info","msg":"Watching namespace(s)","namespaces":["harbour","dock-2"]}`:  {"harbour", "dock-2"},
		"2026-01-01T00:00:00Z\tINFO\tsetup\tWatching namespaces\t{\"namespaces\": \"a,b\"}": {"a", "b"},
		`INFO Watching namespace {"namespace": "harbour"}`:                                  {"harbour"},
		`INFO watching all namespaces`:                                                      nil,
		`INFO Watching namespace(s) all namespaces`:                                         nil,
		`INFO Watching namespace(s) {"namespaces": ""}`:                                     nil,
		`INFO Starting EventSource {"source": "kind source: *v1.Namespace"}`:                nil,
	} {
		r := newReadiness()
		r.read(line)
		if got := r.watches(); !slices.Equal(got, want) {
			t.Errorf("%s: got %q", line, got)
		}
	}
}
