// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package whycmd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/why"
)

var whyStart = time.Date(2026, 3, 1, 12, 0, 0, 250e6, time.UTC)

// whyRecords have one of everything that is shown.
func whyRecords() []*why.Record {
	app := why.Object{Kind: "AppService", Group: "app.example.com", Version: "v1", Namespace: "default", Name: "web"}
	deployment := why.Object{Kind: "Deployment", Group: "apps", Version: "v1", Namespace: "default", Name: "web"}
	return []*why.Record{
		{
			ID: 41, Controller: "appservice", Object: app, Start: whyStart, Folded: 1, Waited: 400 * time.Microsecond, Duration: 12 * time.Millisecond,
			Causes: []why.Cause{{
				Type: why.Updated, Object: &app, Changed: 3, By: []why.Writer{{Manager: "kubectl-edit", Operation: "Update"}},
				Changes: []why.Change{{Path: "spec.size", Old: "3", New: "1"}, {Path: "metadata.labels.team", New: `"a"`}},
			}},
			Writes: []why.Write{
				{Verb: "apply", Object: deployment, Duration: 5 * time.Millisecond},
				{Verb: "patch", Subresource: "status", Object: app, Duration: 4 * time.Millisecond, NoChange: true},
				{Verb: "update", Object: deployment, Duration: time.Millisecond, Error: "409 Conflict"},
			},
			Written: 4, Outcome: why.Failed, Error: "applying Deployment web: conflict",
		},
		{
			ID: 42, Controller: "appservice", Object: app, Start: whyStart.Add(time.Second), Folded: 5, Waited: 50 * time.Millisecond,
			Causes: []why.Cause{
				{Type: why.Retried}, {Type: why.Listed, Object: &app},
				{
					Type: why.Updated, Object: &deployment, Changed: 1, Changes: []why.Change{{Path: "status.readyReplicas", Old: "0", New: "1"}},
					By:    []why.Writer{{Manager: "kube-controller-manager", Subresource: "status"}},
					Write: &why.WriteRef{Record: 41},
				},
			},
			Outcome: why.Requeued, RequeueAfter: 5 * time.Second,
			Findings: []why.Finding{
				{Type: why.NoOp, Message: "nothing it reads has changed, and it wrote nothing"},
				{Type: why.Loop, Message: "spec.replicas goes back and forth"},
			},
		},
	}
}

func whySummary() why.Summary {
	return why.Summary{
		Version: 1, Since: whyStart, Last: 42, Kept: why.Kept{Records: 2, Objects: 1}, Dropped: why.Dropped{Records: 7, Causes: 1},
		Controllers: []why.ControllerSummary{
			{
				Name: "appservice", Kind: "AppService", Reconciles: 9, Folded: 3, Writes: 6, NoOp: 1, SelfInflicted: 2, UserChanges: 2,
				ReconcilesPerChange: 4.5, WritesPerChange: 3, Filtered: 12, Causes: map[why.CauseType]uint64{why.Updated: 8, why.Listed: 1},
			},
			{Name: "robot", Kind: "Robot"},
		},
	}
}

// whyServer answers as a page does.
func whyServer(t *testing.T) *httptest.Server {
	t.Helper()
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/why/summary", func(w http.ResponseWriter, _ *http.Request) { answer(w, whySummary()) })
	mux.HandleFunc("/why/records", func(w http.ResponseWriter, r *http.Request) {
		a := why.Answer{Records: []*why.Record{}}
		if name := r.FormValue("name"); name == "" || name == "web" && r.FormValue("kind") == "AppService" {
			a = why.Answer{Records: whyRecords(), Last: 42}
		}
		answer(w, a)
	})
	mux.HandleFunc("/why/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		data, err := json.Marshal(whyRecords()[1])
		if err != nil || r.FormValue("after") != "42" {
			t.Errorf("%v: it follows after %q", err, r.FormValue("after"))
		}
		fmt.Fprintf(w, ": hello\n\nevent: lost\ndata: {\"records\":3}\n\nevent: record\nid: 43\ndata: %s\n\n", data)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestWhy(t *testing.T) {
	server := whyServer(t)
	old := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(old.Close)
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"last":            {[]string{"--last", "2"}, cmdutil.ExitOK},
		"an object":       {[]string{"appsvc/web"}, cmdutil.ExitOK},
		"plural":          {[]string{"APPSERVICES/web"}, cmdutil.ExitOK},
		"json":            {[]string{"--last", "2", "-o", "json"}, cmdutil.ExitOK},
		"follow":          {[]string{"--follow"}, cmdutil.ExitError},
		"totals":          {[]string{"--totals"}, cmdutil.ExitOK},
		"totals-of-one":   {[]string{"robots", "--totals"}, cmdutil.ExitOK},
		"unknown-kind":    {[]string{"potato/web"}, cmdutil.ExitUsage},
		"unknown-object":  {[]string{"appservice/other", "-n", "team"}, cmdutil.ExitError},
		"no-object":       {[]string{"appservice/"}, cmdutil.ExitUsage},
		"kind and name":   {[]string{"appservice", "web"}, cmdutil.ExitOK},
		"two":             {[]string{"appservice/web", "appservice/api"}, cmdutil.ExitUsage},
		"too-many":        {[]string{"--last", "0"}, cmdutil.ExitUsage},
		"totals-and-last": {[]string{"--totals", "--last", "2"}, cmdutil.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			code, screen := newConsole(nil).Screen(t.Context(), append([]string{"why", "--address", server.URL}, test.args...)...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "why/"+strings.ReplaceAll(name, " ", "-"), strings.ReplaceAll(screen, server.URL, "http://127.0.0.1:8082"))
		})
	}
	t.Run("too old", func(t *testing.T) {
		code, screen := newConsole(nil).Screen(t.Context(), "why", "--address", old.URL+"/why/")
		clitest.ExpectCode(t, code, cmdutil.ExitError)
		golden.Compare(t, "why/too-old", strings.ReplaceAll(screen, old.URL, "http://127.0.0.1:8082"))
	})
	t.Run("no URL", func(t *testing.T) {
		code, screen := newConsole(nil).Screen(t.Context(), "why", "--address", "127.0.0.1:8082")
		clitest.ExpectCode(t, code, cmdutil.ExitUsage)
		golden.Compare(t, "why/no-url", screen)
	})
}

func TestWhichKind(t *testing.T) {
	summary := why.Summary{Controllers: []why.ControllerSummary{{Name: "appservice", Kind: "AppService"}, {Name: "policy", Kind: "Policy"}, {Name: "mesh", Kind: "Mesh"}}}
	for given, want := range map[string]string{
		"appsvc": "AppService", "AppServices": "AppService", "policy": "Policy", "policies/p": "Policy", "meshes": "Mesh",
	} {
		if kind, _, err := whichObject(given, summary); err != nil || kind != want {
			t.Errorf("%s: %s, %v", given, kind, err)
		}
	}
}

func TestWhyFindsThePageOfACluster(t *testing.T) {
	server := whyServer(t)
	here := clitest.Alive
	here.Dir = t.TempDir()
	dock := &clitest.FakeDock{Clusters: map[string]cluster.Status{here.Name: here, clitest.Stopped.Name: clitest.Stopped}}

	code, screen := newConsole(dock).Screen(t.Context(), "why", "--name", clitest.Stopped.Name)
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	golden.Compare(t, "why/stopped", screen)

	code, screen = newConsole(dock).Screen(t.Context(), "why", "--name", here.Name)
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	golden.Compare(t, "why/nobody", screen)

	announce := func(dir string, file page.File) *page.Note {
		note, err := page.Announce(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { note.Close() })
		return note
	}
	announce(here.Dir, page.File{Address: server.URL})
	code, screen = newConsole(dock).Screen(t.Context(), "why", "robot", "--totals")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	if !strings.Contains(screen, "robot") {
		t.Errorf("it says %s", screen)
	}

	// One that does not answer is passed over for the one before.
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	silent := announce(here.Dir, page.File{Address: gone.URL})
	code, _ = newConsole(dock).Screen(t.Context(), "why", "--totals")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)

	// In the folder of a project, its own operator is asked, whatever cluster it runs on.
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	other := clitest.Alive
	other.Name, other.Dir = "other", t.TempDir()
	dock.Clusters[other.Name] = other
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"error":"this operator does not use package why"}`)
	}))
	t.Cleanup(refusing.Close)
	developed := announce(other.Dir, page.File{Address: refusing.URL, Project: filepath.Dir(folder)})
	code, screen = newConsole(dock).Screen(t.Context(), "why")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	golden.Compare(t, "why/developed", screen)
	code, _ = newConsole(dock).Screen(t.Context(), "why", "--name", here.Name, "--totals")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	for _, note := range []*page.Note{silent, developed} {
		if err := note.Close(); err != nil {
			t.Error(err)
		}
	}
	announce(other.Dir, page.File{Address: refusing.URL, Project: t.TempDir()})
	code, _ = newConsole(dock).Screen(t.Context(), "why", "--totals")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
}

// What a process leaves that is killed is not taken for a page, and said.
func TestWhyNoticesThatThePageIsDead(t *testing.T) {
	here := clitest.Alive
	here.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(here.Dir, page.FileName), []byte(`{"address":"http://127.0.0.1:1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, screen := newConsole(&clitest.FakeDock{Clusters: map[string]cluster.Status{here.Name: here}}).Screen(t.Context(), "why", "--name", here.Name)
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	golden.Compare(t, "why/killed", screen)
}

// In the folder of a project without a session, it is about that project, and not about the cluster of the fleet.
func TestWhyInTheFolderOfAProjectWithoutASession(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/ship\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	found, err := project.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	s := newConsole(&clitest.FakeDock{})
	s.Dock.Home = func() string { return home }
	expectNotRunning := func(code int, screen string) {
		t.Helper()
		clitest.ExpectCode(t, code, cmdutil.ExitError)
		if !strings.Contains(screen, "opdock dev is not running in "+found.Dir) || !strings.Contains(screen, "start it: opdock dev") || strings.Contains(screen, `"dock"`) {
			t.Errorf("it says:\n%s", screen)
		}
	}
	// Never developed.
	code, screen := s.Screen(t.Context(), "why")
	expectNotRunning(code, screen)
	if err := s.RememberProject(s.ClusterNameFor(found), found); err != nil {
		t.Fatal(err)
	}
	again := newConsole(&clitest.FakeDock{})
	again.Dock.Home = s.Dock.Home
	code, screen = again.Screen(t.Context(), "why")
	expectNotRunning(code, screen)
	if strings.Contains(screen, "--open") {
		t.Errorf("there is no recording, but it says:\n%s", screen)
	}

	recordings := filepath.Join(home, "dev", found.Name, "recordings")
	if err := os.MkdirAll(recordings, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"20260102T030405.000.jsonl", "20260102T030406.000.jsonl", "prove.jsonl"} {
		if err := os.WriteFile(filepath.Join(recordings, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, screen = again.Screen(t.Context(), "why")
	expectNotRunning(code, screen)
	if want := "or look at the last recording: opdock trace --open " + filepath.Join(recordings, "20260102T030406.000.jsonl") + " --page"; !strings.Contains(screen, want) {
		t.Errorf("%q is missing in\n%s", want, screen)
	}
	if !strings.Contains(screen, "opdock why --name NAME") {
		t.Errorf("no cluster has records, but it says:\n%s", screen)
	}

	// The fleet runs elsewhere.
	dock := clitest.Alive
	dock.Dir = t.TempDir()
	note, err := page.Announce(dock.Dir, page.File{Address: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { note.Close() })
	again.Fake.Clusters = clitest.Clusters(dock, clitest.Stopped)
	again.ErrText.Reset()
	code, screen = again.Screen(t.Context(), "why")
	expectNotRunning(code, screen)
	if !strings.Contains(screen, "or select another cluster: opdock why --name dock\n") || strings.Contains(screen, "NAME") {
		t.Errorf("it says:\n%s", screen)
	}
}
