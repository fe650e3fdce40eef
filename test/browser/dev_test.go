// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/test/browser/chromium"
	"github.com/opdock/opdock/why"
)

// recordingShip is the project of the tests of opdock dev, with the two lines that let its operator record. It uses the
// modules of this repository at the same versions, so that nothing is downloaded.
func recordingShip(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "ship")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "test", "dev", "testdata", "ship"))); err != nil {
		t.Fatal(err)
	}
	change := func(from, to string, change func(string) string) {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		changed := change(string(content))
		if changed == string(content) {
			t.Fatalf("there is nothing to change in %s", from)
		}
		if err := os.WriteFile(filepath.Join(dir, to), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change(filepath.Join(root, "go.mod"), "go.mod", func(text string) string {
		return regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(text, "module example.com/ship") +
			"\nrequire github.com/opdock/opdock v0.0.0\nreplace github.com/opdock/opdock => " + root + "\n"
	})
	change(filepath.Join(root, "go.sum"), "go.sum", func(text string) string { return text + "\n" })
	for file, lines := range map[string][2]string{
		"cmd/main.go":                  {"ctrl.Options{", "ctrl.Options{NewClient: why.New(why.Options{}).NewClient, "},
		"internal/controller/ships.go": {"ctrl.NewControllerManagedBy(manager)", "why.ControllerManagedBy(manager, why.RecorderOf(manager))"},
	} {
		change(filepath.Join(dir, file), file, func(text string) string {
			return strings.NewReplacer(lines[0], lines[1], "\n\tv1 \"example.com", "\n\t\"github.com/opdock/opdock/why\"\n\n\tv1 \"example.com").Replace(text)
		})
	}
	return dir
}

// awaitRecords waits until something is recorded, for which the operator has to be built first.
func awaitRecords(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/why/records", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var answer why.Answer
		err = json.NewDecoder(response.Body).Decode(&answer)
		response.Body.Close()
		if err == nil && len(answer.Records) > 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("nothing is recorded: %v", err)
		}
	}
}

// A user changes an object of an operator under development and sees why the operator acts.
func TestADevelopedOperator(t *testing.T) {
	o := newOpdock(t)
	t.Setenv("GOFLAGS", "-mod=mod")
	address := o.serve(t, "ship", "dev", "--samples", "--dir", recordingShip(t))
	awaitRecords(t, address)
	p := look(t, address, chromium.Options{})
	await(t, p, "globalThis.opdock && opdock.operator?.state === 'recording' && opdock.store.passes.length > 0")
	greet := o.command("kubectl", "--name", "ship", "patch", "ship", "sample", "--type=merge", "-p", `{"spec":{"greeting":"all"}}`)
	if out, err := greet.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := "opdock.store.passes.find((p) => p.causes.some((c) => c.raw.changes?.some((f) => f.path === 'spec.greeting')))"
	await(t, p, found)
	do(t, p, "opdock.open("+found+")")
	expect(t, p, "details", "Ship sample", "spec.greeting", "kubectl", "ConfigMap sample")
	expect(t, p, "connection", "Live")
}
