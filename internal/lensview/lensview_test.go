// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lensview

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/internal/rights/granting"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/why"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func shop(version string) *lens.Object {
	return &lens.Object{Group: "example.com", Version: "v1", Kind: "Shop", Namespace: "a", Name: "web", UID: "u1", ResourceVersion: version}
}

// session is what a lens sees of one reconcile: an event, a write that is answered, one that is refused, and the echo of the first.
func session() []lens.Event {
	shops := lens.Resource{Group: "example.com", Version: "v1", Resource: "shops"}
	child := &lens.Object{Version: "v1", Kind: "ConfigMap", Namespace: "a", Name: "web", UID: "u2", ResourceVersion: "8", Owners: []lens.Owner{{Group: "example.com", Kind: "Shop", Name: "web", UID: "u1", Controller: true}}}
	maps := lens.Resource{Version: "v1", Resource: "configmaps", Namespace: "a", Name: "web"}
	return []lens.Event{
		{Process: &lens.Process{Started: true, Identity: "system:serviceaccount:s:o", Instrumented: true}},
		{Request: &lens.Request{ID: 1, Verb: "watch", Resource: shops, Open: true, Status: 200}},
		{Delivery: &lens.Delivery{Watch: 1, Resource: shops, Type: "ADDED", Object: shop("5"), Initial: true}},
		{Delivery: &lens.Delivery{Watch: 1, Resource: shops, Type: "BOOKMARK"}},
		{Delivery: &lens.Delivery{Watch: 1, Resource: shops, Type: "MODIFIED", Object: shop("7"), Change: &lens.Change{Fields: []why.Change{{Path: "spec.size", Old: "1", New: "2"}}, By: []why.Writer{{Manager: "kubectl"}}}}},
		{Reconcile: &lens.Reconcile{ID: 3, Controller: "shop", Group: "example.com", Kind: "Shop", Namespace: "a", Name: "web"}},
		{Read: &lens.Read{Reconcile: 3, Group: "example.com", Version: "v1", Kind: "Shop", Namespace: "a", Name: "web"}},
		{Request: &lens.Request{ID: 2, Verb: "update", Resource: maps, Object: child, Status: 200, Reconcile: 3, BytesIn: 10, BytesOut: 20, Duration: 3 * time.Millisecond, Change: &lens.Change{None: true}}},
		{Request: &lens.Request{ID: 3, Verb: "list", Resource: lens.Resource{Version: "v1", Resource: "secrets", Namespace: "a"}, Status: 403, Message: "forbidden", Reconcile: 3, Query: &lens.Query{}}},
		{Reconcile: &lens.Reconcile{ID: 3, Controller: "shop", Group: "example.com", Kind: "Shop", Namespace: "a", Name: "web", Ended: true, Duration: time.Second}},
		{Request: &lens.Request{ID: 1, Verb: "watch", Resource: shops, Status: 200, Duration: time.Minute}},
	}
}

// write makes a recording of a session.
func write(t *testing.T, project string) string {
	t.Helper()
	return record(t, project, session())
}

// record makes a recording of events, a second apart unless they have a time.
func record(t *testing.T, project string, events []lens.Event) string {
	t.Helper()
	var lines strings.Builder
	encode := json.NewEncoder(&lines)
	if err := encode.Encode(lens.Header{Opdock: "recording", Version: 1, Began: began, Project: project, Identity: "system:serviceaccount:s:o"}); err != nil {
		t.Fatal(err)
	}
	for i, event := range events {
		event.Seq = uint64(i + 1) //nolint:gosec // not negative
		if event.At.IsZero() {
			event.At = began.Add(time.Duration(i) * time.Second)
		}
		if err := encode.Encode(event); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "one.jsonl")
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatGoesOverTheWire(t *testing.T) {
	t.Parallel()
	view := New(lens.Header{})
	var got []string
	for _, event := range session() {
		if event.Reconcile != nil {
			view.see(&event)
		}
		x, ok := view.exchangeOf(&event)
		if !ok {
			continue
		}
		line := strings.Join([]string{x.Verb, x.Event, x.Resource, x.Namespace + "/" + x.Name, x.Note, x.Message, x.Controller}, " ")
		if x.For != nil {
			line += " for " + x.For.Name
		}
		got = append(got, line)
		if x.Verb == "update" && (x.Bytes != 30 || x.Duration != 3*time.Millisecond || x.Kind != "ConfigMap") {
			t.Errorf("the write is %+v", x)
		}
		if x.Verb == "list" && !x.Refused {
			t.Errorf("the refused read is %+v", x)
		}
	}
	want := []string{
		"watch  shops /   ", "watch ADDED shops a/web initial  ", "watch MODIFIED shops a/web   ",
		"update  configmaps a/web no change  shop for web", "list  secrets a/  forbidden shop for web",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func grants(context.Context) (*granting.Grants, error) {
	rule := func(resource string, verbs ...string) rights.Rule {
		return rights.Rule{From: "ClusterRole manager", PolicyRule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}}
	}
	return &granting.Grants{Granted: rights.Granted{Source: "ClusterRole manager", Rules: []rights.Rule{rule("configmaps", "update", "delete")}}}, nil
}

// A recording is shown with its objects, its reconciles, its traffic and its rights.
func TestOpen(t *testing.T) {
	t.Parallel()
	options, found, err := Open(write(t, "shop"), grants, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if !found.Cut || !options.Until.Equal(began.Add(10*time.Second)) || !strings.HasPrefix(options.Title, "recording of shop, ") {
		t.Errorf("%+v, until %s: %s", found, options.Until, options.Title)
	}
	server, err := page.New(options)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string, into any) {
		t.Helper()
		recorder := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
		server.ServeHTTP(recorder, request)
		if err := json.Unmarshal(recorder.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v: %s", path, err, recorder.Body)
		}
	}
	var tree struct {
		Objects []struct{ Kind, Name, UID string }
		Traffic bool
	}
	get("/api/tree", &tree)
	if len(tree.Objects) != 2 || !tree.Traffic {
		t.Errorf("the tree is %+v", tree)
	}
	var records why.Answer
	get("/why/records", &records)
	if len(records.Records) != 1 || records.Records[0].Object.Kind != "Shop" || records.Records[0].Written != 1 || len(records.Records[0].Causes) != 2 || records.Records[0].Causes[1].Changes[0].Path != "spec.size" {
		t.Errorf("the records are %+v", records)
	}
	var summary why.Summary
	get("/why/summary", &summary)
	if len(summary.Controllers) != 1 || summary.Controllers[0].Kind != "Shop" || summary.Controllers[0].Reconciles != 1 || summary.Kept.Records != 1 || !summary.Since.Equal(began) {
		t.Errorf("the summary is %+v", summary)
	}
	var report rights.Report
	get("/api/rights", &report)
	if report.Granted != "ClusterRole manager" || report.Count(rights.Unused) != 1 || report.Count(rights.Refused) != 1 || report.Identity != "system:serviceaccount:s:o" {
		t.Errorf("the rights are %+v", report)
	}
	for _, finding := range report.Findings {
		if finding.Type == rights.Refused && (finding.Evidence == nil || finding.Evidence.Reconcile == nil || finding.Evidence.Reconcile.Name != "web") {
			t.Errorf("the evidence is %+v", finding.Evidence)
		}
	}
}

// A recording of another project is not compared with what this one grants.
func TestOpenOfAnotherProject(t *testing.T) {
	t.Parallel()
	options, _, err := Open(write(t, "other"), grants, "shop")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := options.Rights(t.Context())
	if report, ok := answer.(*rights.Report); err != nil || !ok || report.Granted != "" || len(report.Needs) == 0 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// TestOpenOfAShortenedRecording has rights that are as wide as those that opdock rbac derives from it.
func TestOpenOfAShortenedRecording(t *testing.T) {
	t.Parallel()
	path := write(t, "shop")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(content), "\n")
	if err := os.WriteFile(path, []byte(lines[0]+strings.Join(lines[3:], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	options, _, err := Open(path, grants, "shop")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := options.Rights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(answer.(*rights.Report).Notes, "\n"); !strings.Contains(notes, "recording one.jsonl lacks 2 of its events: ") {
		t.Errorf("the notes are %s", notes)
	}
}

// While a session goes on, recordings of earlier ones count, but not those of other programs, and one that cannot be read is said.
func TestRightsWithEarlierRecordings(t *testing.T) {
	t.Parallel()
	view := New(lens.Header{})
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	earlier := write(t, "shop")
	content, err := os.ReadFile(earlier)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(content)))
	lines.Scan()
	if err := os.WriteFile(bad, []byte(lines.Text()+"\n{\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "kubectl.jsonl")
	ofKubectl := strings.Replace(string(content), `"project"`, `"traced":true,"command":["kubectl","apply"],"project"`, 1)
	if err := os.WriteFile(other, []byte(ofKubectl), 0o600); err != nil {
		t.Fatal(err)
	}
	view.Earlier, view.Grants = []string{earlier, other, bad, filepath.Join(t.TempDir(), "gone.jsonl")}, grants
	deadline := time.Now().Add(testenv.Patience)
	for {
		answer, err := view.Rights(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		report, ok := answer.(*rights.Report)
		if !ok {
			t.Fatalf("%T", answer)
		}
		notes := strings.Join(report.Notes, "\n")
		if strings.Contains(notes, "still being read") && time.Now().Before(deadline) {
			continue
		}
		if len(report.Recordings) != 2 || !strings.Contains(notes, "an earlier recording is not counted") || strings.Contains(notes, "gone.jsonl") {
			t.Errorf("%+v\n%s", report.Recordings, notes)
		}
		return
	}
}
