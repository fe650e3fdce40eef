// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/internal/tree"
	"github.com/opdock/opdock/why"
)

// patience is how long something may take before a test fails for it.
const patience = testenv.Patience

// follower reads server-sent events.
type follower struct {
	response *http.Response
	lines    *bufio.Reader
	id       string
}

func followStream(t *testing.T, server *httptest.Server, after string) *follower {
	t.Helper()
	return follow(t, server.URL+"/api/stream", after)
}

func follow(t *testing.T, address, after string) *follower {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Last-Event-ID", after)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return &follower{response: response, lines: bufio.NewReader(response.Body)}
}

// next reads the next event of a name into the value.
func (f *follower) next(t *testing.T, name string, value any) {
	t.Helper()
	event := ""
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("waiting for %s: %v", name, err)
		}
		line = strings.TrimSuffix(line, "\n")
		switch field, text, _ := strings.Cut(line, ": "); field {
		case "event":
			event = text
		case "id":
			f.id = text
		case "data":
			if event != name {
				continue
			}
			if err := json.Unmarshal([]byte(text), value); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

func TestStreamHasChanges(t *testing.T) {
	model, changes := tree.NewModel(), NewChanges()
	model.Set(tree.Object{UID: "1", Name: "one"})
	server := serve(t, Options{Tree: model, Changes: changes})
	follower := followStream(t, server, "")
	var whole, delta, resumed treeMessage
	follower.next(t, "tree", &whole)
	if !whole.Whole || len(whole.Objects) != 1 || whole.Instance == "" {
		t.Fatalf("it begins with %+v", whole)
	}
	model.Set(tree.Object{UID: "2", Name: "two"})
	follower.next(t, "tree", &delta)
	if delta.Whole || len(delta.Objects) != 1 || delta.Objects[0].Name != "two" {
		t.Errorf("then it tells %+v", delta)
	}
	changes.Add(Change{Type: why.Updated, Object: why.Object{Kind: "Pod", Name: "p"}})
	var batch changesMessage
	follower.next(t, "changes", &batch)
	if len(batch.Changes) != 1 || batch.Changes[0].Object.Name != "p" || batch.Lost != 0 {
		t.Errorf("of changes it tells %+v", batch)
	}
	// Who comes back gets only what it has missed.
	model.Remove("1")
	followStream(t, server, follower.id).next(t, "tree", &resumed)
	if resumed.Whole || len(resumed.Objects) != 0 || len(resumed.Removed) != 1 {
		t.Errorf("who comes back is told %+v", resumed)
	}
	for _, nonsense := range []string{"other-1-1-1", "x", follower.id + "-1", strings.Split(follower.id, "-")[0] + "-a-b-c"} {
		var again treeMessage
		followStream(t, server, nonsense).next(t, "tree", &again)
		if !again.Whole {
			t.Errorf("who was at %q is told %+v", nonsense, again)
		}
	}
}

// A new client has missed nothing, however much there was before. A client that returns learns how much it has missed.
func TestOnlyOpenStreamsMissChanges(t *testing.T) {
	changes := NewChanges()
	server := serve(t, Options{Changes: changes})
	changes.Add(Change{})
	early := followStream(t, server, "")
	var batch changesMessage
	early.next(t, "changes", &batch)
	early.response.Body.Close()
	const total = 3*keptChanges + 7
	for range total {
		changes.Add(Change{})
	}
	kept := len(changes.kept)
	batch = changesMessage{}
	followStream(t, server, "").next(t, "changes", &batch)
	if len(batch.Changes) != kept || batch.Lost != 0 {
		t.Errorf("who is new is told %d of %d changes and %d missed", len(batch.Changes), kept, batch.Lost)
	}
	for name, back := range map[string]*follower{
		"by itself": followStream(t, server, early.id), "by the page": follow(t, server.URL+"/api/stream?after="+early.id, ""),
	} {
		batch = changesMessage{}
		back.next(t, "changes", &batch)
		if len(batch.Changes) != kept || int(batch.Lost) != total-kept {
			t.Errorf("who comes back %s is told %d changes and %d missed", name, len(batch.Changes), batch.Lost)
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	server := serve(t, Options{MaxStreams: 2})
	first := followStream(t, server, "")
	followStream(t, server, "")
	response, body := ask(t, server, http.MethodGet, "/api/stream", nil)
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" || !strings.Contains(body, "2 streams are open already") {
		t.Fatalf("the third gets %d: %s", response.StatusCode, body)
	}
	if response, _ := ask(t, server, http.MethodGet, "/api/tree", nil); response.StatusCode != http.StatusOK {
		t.Errorf("the rest of the page is not served either: %d", response.StatusCode)
	}
	first.response.Body.Close()
	until := time.Now().Add(patience)
	for {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/stream", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(until) {
			t.Fatal("the place of one that has gone is never free")
		}
	}
}

// A client that asks and never reads must not hold up the tree, nor make the server remember what it has missed.
func TestSlowClientDelaysNoOther(t *testing.T) {
	model, changes := tree.NewModel(), NewChanges()
	server := serve(t, Options{Tree: model, Changes: changes})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /api/stream HTTP/1.1\r\nHost: %s\r\n\r\n", server.Listener.Addr())
	padding := strings.Repeat("x", 1000)
	reader := followStream(t, server, "")
	var message treeMessage
	for round := range 20 {
		for i := range 1000 {
			model.Set(tree.Object{UID: types.UID(strconv.Itoa(i)), Name: strconv.Itoa(round), Message: padding})
			changes.Add(Change{Type: why.Updated, Object: why.Object{Name: padding}})
		}
	}
	for seen := ""; seen != "19"; {
		message = treeMessage{}
		reader.next(t, "tree", &message)
		if len(message.Objects) > 0 {
			seen = message.Objects[0].Name
		}
	}
	if kept := len(changes.kept); kept > 2*keptChanges {
		t.Errorf("%d changes are kept", kept)
	}
}

func TestDroppedRecordsAreCounted(t *testing.T) {
	changes := NewChanges()
	const total = 3*keptChanges + 7
	for range total {
		changes.Add(Change{})
	}
	batch := changes.since(0)
	if got := len(batch.Changes) + int(batch.Lost); got != total || batch.Last != total {
		t.Errorf("of %d changes %d are told and %d said to be lost", total, len(batch.Changes), batch.Lost)
	}
	if again := changes.since(batch.Last); len(again.Changes) != 0 || again.Lost != 0 {
		t.Errorf("then it tells %+v", again)
	}
	var nobody *Changes
	if got := nobody.since(3); len(got.Changes) != 0 || got.Last != 3 || nobody.next() != nil {
		t.Errorf("nobody tells %+v", got)
	}
}

func TestChangesThatAWatchSees(t *testing.T) {
	by := []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}}
	made := func(version, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings", UID: "1", ResourceVersion: version, ManagedFields: by},
			Data:       map[string]string{"colour": value},
		}
	}
	changes := NewChanges()
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	changes.Observe(kind, nil, made("1", "red"))
	changes.Observe(kind, made("1", "red"), made("2", "green"))
	changes.Observe(kind, made("2", "green"), made("3", "green")) // no visible change
	changes.Observe(kind, made("3", "green"), nil)
	got := changes.since(0).Changes
	if len(got) != 3 || got[0].Type != why.Created || got[1].Type != why.Updated || got[2].Type != why.Deleted {
		t.Fatalf("got %+v", got)
	}
	if len(got[0].By) != 1 || got[0].By[0].Manager != "kubectl" || got[0].ResourceVersion != "1" || got[0].Object.Kind != "ConfigMap" {
		t.Errorf("the creation is %+v", got[0])
	}
	if update := got[1]; len(update.Changes) != 1 || update.Changes[0].Path != "data.colour" || update.Changes[0].New != `"green"` {
		t.Errorf("the update is %+v", update)
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	made := func(version, value string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "password", ResourceVersion: version, Annotations: map[string]string{"last": value}},
			Data:       map[string][]byte{"password": []byte(value)},
		}
	}
	changes := NewChanges()
	kind := corev1.SchemeGroupVersion.WithKind("Secret")
	changes.Observe(kind, nil, made("1", "open sesame"))
	changes.Observe(kind, made("1", "open sesame"), made("2", "hunter2"))
	changes.Observe(kind, made("2", "hunter2"), nil)
	text, err := json.Marshal(changes.since(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"sesame", "hunter2", "b3BlbiBzZXNhbWU", "aHVudGVyMg"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("a secret is told: %s", text)
		}
	}
	if !strings.Contains(string(text), "password") {
		t.Errorf("that it has changed is not told: %s", text)
	}
}
