// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/lensview"
	"github.com/opdock/opdock/test/browser/chromium"
)

// The recording of a disturbed run shows what was done to it in red, although the API server took the write.
func TestFaultsAreRed(t *testing.T) {
	began := time.Now().Add(-time.Hour)
	maps := lens.Resource{Version: "v1", Resource: "configmaps", Namespace: "default", Name: "logbook"}
	var lines bytes.Buffer
	encode := json.NewEncoder(&lines)
	for _, line := range []any{
		lens.Header{Opdock: "recording", Version: 1, Began: began, Project: "ship"},
		lens.Event{Seq: 1, At: began, Process: &lens.Process{Started: true}},
		lens.Event{Seq: 2, At: began.Add(time.Second), Request: &lens.Request{ID: 1, Verb: "create", Resource: maps, Status: 201}},
		lens.Event{Seq: 3, At: began.Add(2 * time.Second), Request: &lens.Request{ID: 2, Verb: "update", Resource: maps, Status: 200, Fault: "killed after the answer"}},
		lens.Event{Seq: 4, At: began.Add(3 * time.Second), Process: &lens.Process{Started: true}},
	} {
		if err := encode.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "replay.jsonl")
	if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	options, _, err := lensview.Open(path, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	p := look(t, start(t, options).URL(), chromium.Options{})
	await(t, p, "globalThis.opdock && opdock.wire.all.length === 2")
	press(t, p, "4")
	await(t, p, "document.querySelectorAll('#wire .row:not([hidden])').length === 2")
	expect(t, p, "traffic-figures", "1 refused")
	got := get[string](t, p, `[...document.querySelectorAll("#wire .row:not([hidden])")].map((row) => {
		const [, verb, , by, status] = row.children;
		const probe = document.body.appendChild(document.createElement("i"));
		probe.style.color = "var(--bad)";
		const bad = getComputedStyle(probe).color;
		probe.remove();
		return [verb.innerText, by.innerText, getComputedStyle(by).color === bad, status.innerText, getComputedStyle(status).color === bad].join(" ");
	}).join("; ")`)
	if want := "update fault: killed after the answer true 200 true; create  false 201 false"; strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got %q, want %q", got, want)
	}
}
