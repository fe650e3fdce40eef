// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/why"
)

// pageAddress is where the project's page is.
func (p *project) pageAddress(t *testing.T) string {
	t.Helper()
	pages, _, err := page.Find(filepath.Dir(p.kubeconfig))
	if err != nil || len(pages) != 1 || pages[0].Project == "" {
		t.Fatalf("there are the pages %+v (%v)", pages, err)
	}
	return pages[0].Address
}

// ask gets a JSON answer of the page.
func ask(ctx context.Context, address string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

// told follows what a page is told until one of the messages is the one.
func told(t *testing.T, address, event string, isIt func(data string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/stream", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines, name := bufio.NewReader(response.Body), ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("waiting for %s: %v", event, err)
		}
		switch field, text, _ := strings.Cut(line, ": "); {
		case field == "event":
			name = strings.TrimSpace(text)
		case field == "data" && name == event && isIt(text):
			return
		}
	}
}

// reconciled waits for a record of the sample after others, whose cause is a change of its spec.
func reconciled(t *testing.T, address string, after uint64, value string) *why.Record {
	t.Helper()
	var found *why.Record
	testenv.Eventually(t, "a reconcile because of "+value, func(ctx context.Context) error {
		var answer why.Answer
		if err := ask(ctx, fmt.Sprintf("%s/why/records?limit=1000&after=%d", address, after), &answer); err != nil {
			return err
		}
		for _, record := range answer.Records {
			for _, cause := range record.Causes {
				if record.Object.Name == "sample" && slices.ContainsFunc(cause.Changes, func(c why.Change) bool {
					return c.Path == "spec.greeting" && strings.Contains(c.New, value)
				}) {
					found = record
					return nil
				}
			}
		}
		return fmt.Errorf("there are %d others", len(answer.Records))
	})
	return found
}

// greet changes the sample as a user does.
func greet(t *testing.T, server client.Client, greeting string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"greeting":"`+greeting+`"}}`))
	if err := server.Patch(t.Context(), ship("sample", nil), patch, client.FieldOwner("passenger")); err != nil {
		t.Fatal(err)
	}
}

// why runs opdock why in the project's folder.
func (p *project) why(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), testenv.Program(t), append([]string{"why"}, arguments...)...)
	command.Dir = filepath.Join(p.dir, "internal")
	command.Env = append(os.Environ(), "OPDOCK_HOME="+p.home, "OPDOCK_CLUSTER=")
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestPage follows a user who watches the page while working on a project, and lets the operator record after a while.
func TestPage(t *testing.T) {
	p := newProject(t, "ship")
	p.start(t, "--samples")
	p.good(t, "generate", "apply", "build", "apply", "restart", "samples")
	server, address := p.server(t), p.pageAddress(t)

	t.Run("the project as it is", func(t *testing.T) {
		told(t, address, "operator", func(data string) bool { return strings.Contains(data, `"state":"recording"`) })
		told(t, address, "tree", func(data string) bool {
			return strings.Contains(data, `"kind":"Ship","namespace":"default","name":"sample"`)
		})
		greet(t, server, "all")
		told(t, address, "changes", func(data string) bool {
			return strings.Contains(data, `"path":"spec.greeting"`) && strings.Contains(data, `"manager":"passenger"`)
		})
		// The operator says nothing itself: this was seen from outside.
		record := reconciled(t, address, 0, "all")
		if len(record.Writes) != 1 || record.Writes[0].Object.Kind != "ConfigMap" || record.Controller != "ship" {
			t.Errorf("it is %+v", record)
		}
		said, err := p.why(t, "ship/sample", "--last", "5")
		if err != nil || !strings.Contains(said, `→ "all"`) || !strings.Contains(said, "by passenger") {
			t.Errorf("opdock why: %v\n%s", err, said)
		}
	})

	t.Run("it records", func(t *testing.T) {
		p.record(t)
		told(t, address, "operator", func(data string) bool { return strings.Contains(data, `"state":"recording"`) })
		greet(t, server, "aboard")
		record := reconciled(t, address, 0, "aboard")
		if by := record.Causes[len(record.Causes)-1].By; len(by) != 1 || by[0].Manager != "passenger" {
			t.Errorf("it was changed by %v", by)
		}
		if len(record.Writes) != 1 || record.Writes[0].Object.Kind != "ConfigMap" {
			t.Errorf("it wrote %+v", record.Writes)
		}
	})

	t.Run("it is restarted", func(t *testing.T) {
		before := reconciled(t, address, 0, "aboard")
		p.edit(t, controllerFile, `"ahoy, "`, `"hello, "`)
		p.good(t, "build", "restart")
		greets(t, server, "sample", "hello, aboard")
		greet(t, server, "again")
		after := reconciled(t, address, before.ID, "again")
		if after.ID <= before.ID {
			t.Errorf("the record %d comes after %d", after.ID, before.ID)
		}
		if kept := reconciled(t, address, 0, "aboard"); kept.ID != before.ID {
			t.Errorf("the record %d has become %d", before.ID, kept.ID)
		}
		var summary why.Summary
		if err := ask(t.Context(), address+"/why/summary", &summary); err != nil || len(summary.Controllers) != 1 || summary.Last < after.ID {
			t.Errorf("the totals are %+v (%v)", summary, err)
		}
		told(t, address, "operator", func(data string) bool {
			var operator struct {
				State  string
				Starts []string
			}
			if err := json.Unmarshal([]byte(data), &operator); err != nil {
				t.Fatal(err)
			}
			return operator.State == "recording" && len(operator.Starts) >= 3
		})
		said, err := p.why(t, "ship/sample", "--last", "5")
		if err != nil || !strings.Contains(said, `spec.greeting  "aboard" → "again"`) || !strings.Contains(said, "by passenger") {
			t.Errorf("opdock why: %v\n%s", err, said)
		}
	})

	t.Run("it ends", func(t *testing.T) {
		if code := p.stop(t, os.Interrupt); code != 0 {
			t.Errorf("exit code %d", code)
		}
		noProcess(t, p)
		if notes, err := filepath.Glob(filepath.Join(filepath.Dir(p.kubeconfig), "page*")); err != nil || len(notes) > 0 {
			t.Errorf("left behind: %v (%v)", notes, err)
		}
	})
}

// record adds the two lines with which an operator records, and the module that they come from: this repository.
func (p *project) record(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile(filepath.Join(p.dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	module := bytes.Join([][]byte{goMod, []byte("require github.com/opdock/opdock v0.0.0"), []byte("replace github.com/opdock/opdock => " + root), nil}, []byte("\n"))
	save(t, filepath.Join(p.dir, "go.mod"), module)
	const importWhy = "\n\t\"github.com/opdock/opdock/why\"\n"
	p.edit(t, "cmd/main.go", "Scheme: scheme, ", "NewClient: why.New(why.Options{}).NewClient, Scheme: scheme, ", "\n\tv1 \"example.com", importWhy+"\n\tv1 \"example.com")
	p.edit(t, controllerFile, "ctrl.NewControllerManagedBy(manager)", "why.ControllerManagedBy(manager, why.RecorderOf(manager))",
		"\n\tv1 \"example.com", importWhy+"\n\tv1 \"example.com")
	// Whatever was built between two of these saves is not yet it.
	for built := false; !built; {
		round := p.next(t)
		built = round.Problem == nil && round.State != "" && slices.Contains(round.Changed, controllerFile)
	}
}
