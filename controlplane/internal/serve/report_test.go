// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/opdock/opdock/controlplane/internal/fault"
)

// brokenPipe is a reader that has gone away.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestReport(t *testing.T) {
	full := &fault.Error{Reason: fault.DiskFull, Message: "the disk is full", Hint: "free some space"}
	for name, test := range map[string]struct {
		tell func(*Reporter)
		want map[string]any
	}{
		"progress": {func(r *Reporter) { r.Progress("etcd", "etcd is up") }, map[string]any{"event": "progress", "step": "etcd", "message": "etcd is up"}},
		"ready":    {func(r *Reporter) { r.Ready("https://x", "/k", "v1") }, map[string]any{"event": "ready", "server": "https://x", "kubeconfig": "/k", "version": "v1"}},
		"fault":    {func(r *Reporter) { r.Error(full) }, map[string]any{"event": "error", "reason": "DiskFull", "message": "the disk is full", "hint": "free some space"}},
		"wrapped fault": {
			func(r *Reporter) { r.Error(fmt.Errorf("starting: %w", errors.Join(full, errors.New("later")))) },
			map[string]any{"event": "error", "reason": "DiskFull", "message": "starting: the disk is full\nlater", "hint": "free some space"},
		},
		"any other error": {func(r *Reporter) { r.Error(errors.New("oops")) }, map[string]any{"event": "error", "reason": "Internal", "message": "oops"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			test.tell(NewReporter(&out, time.Now()))
			var got map[string]any
			if err := json.Unmarshal(out.Bytes(), &got); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
				t.Fatalf("not one line of JSON: %q, %v", out.String(), err)
			}
			for key, want := range test.want {
				if got[key] != want {
					t.Errorf("%s is %v, want %v", key, got[key], want)
				}
			}
			if _, ok := got["elapsedMs"]; !ok {
				t.Error("elapsedMs is missing")
			}
		})
	}
}

func TestNoListener(*testing.T) {
	NewReporter(nil, time.Now()).Progress("etcd", "etcd is up")
	NewReporter(brokenPipe{}, time.Now()).Error(errors.New("oops"))
}
