// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"slices"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/lens"
)

// Each start of an operator and each end is in the recording, in order and also after a crash.
func TestProcessesAreRecorded(t *testing.T) {
	proxy, err := lens.Start(t.Context(), lens.Options{Upstream: &rest.Config{Host: "https://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	l := &lensing{proxy: proxy}
	const forever = "while :; do sleep 0.02; done"
	for _, script := range []string{"kill -9 $$", "exit 3", forever} {
		l.begin("", false)
		p, _ := shell(t, script)
		l.ends(p)
		if script == forever {
			p.stop(patience)
		}
		awaitEnd(t, p)
	}
	l.running.Wait()
	if err := proxy.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for event := range proxy.Stream().Follow(t.Context(), 0) {
		if event.Process.Started {
			got = append(got, "started")
		} else {
			got = append(got, event.Process.How)
		}
	}
	if want := []string{"started", "was terminated by signal killed", "started", "exited with status 3", "started", "was stopped"}; !slices.Equal(got, want) {
		t.Errorf("recorded is %q", got)
	}
}
