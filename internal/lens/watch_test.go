// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

func TestWatchEventsArriveAtOnce(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case event := <-next:
				fmt.Fprintln(w, event)
				w.(http.Flusher).Flush()
			}
		}
	})
	response := s.request(http.MethodGet, "/apis/apps/v1/deployments?watch=true&allowWatchBookmarks=true&resourceVersion=1", "")
	lines := bufio.NewReader(response.Body)
	event := func(kind, version string, replicas int) string {
		return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":%q},"spec":{"replicas":%d}}}`,
			kind, version, replicas)
	}
	// Each arrives before the next is sent.
	for _, sent := range []string{event("ADDED", "2", 1), event("MODIFIED", "3", 5), event("DELETED", "4", 5)} {
		next <- sent
		if got, err := lines.ReadString('\n'); strings.TrimSpace(got) != sent || err != nil {
			t.Fatalf("received %q, %v", got, err)
		}
	}
	response.Body.Close()
	if got := s.lastRequest(); got.Verb != "watch" || got.Error != "" || got.BytesOut == 0 {
		t.Errorf("the end of the watch is recorded as %+v", got)
	}
	var opened bool
	var deliveries []*Delivery
	for _, e := range s.events() {
		opened = opened || e.Request != nil && e.Request.Open
		if e.Delivery != nil {
			deliveries = append(deliveries, e.Delivery)
		}
	}
	if !opened || len(deliveries) != 3 {
		t.Fatalf("the begin of the watch is recorded: %v, and %d deliveries", opened, len(deliveries))
	}
	changed := deliveries[1].Change
	if deliveries[0].Change != nil || changed == nil || len(changed.Fields) != 1 || changed.Fields[0].Path != "spec.replicas" ||
		changed.Fields[0].Old != "1" || changed.Fields[0].New != "5" || changed.From != "2" || deliveries[2].Type != "DELETED" {
		t.Errorf("deliveries: %+v, change %+v", deliveries, changed)
	}
}

// TestInformersThatBeginWithAList reads what those of client-go before 0.35 do: a list of any version, and a watch from there on.
func TestInformersThatBeginWithAList(t *testing.T) {
	t.Parallel()
	const item = `"metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"2"},"spec":{"replicas":1}`
	const changed = `{"type":"MODIFIED","object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"3"},"spec":{"replicas":5}}}`
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			fmt.Fprintln(w, changed)
			return
		}
		fmt.Fprintf(w, `{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{"resourceVersion":"2"},"items":[{%s}]}`, item)
	})
	deliveries := func() (all []*Delivery) {
		for _, e := range s.events() {
			if e.Delivery != nil {
				all = append(all, e.Delivery)
			}
		}
		return all
	}
	s.read(s.request(http.MethodGet, "/apis/apps/v1/deployments", ""))
	s.read(s.request(http.MethodGet, "/apis/apps/v1/deployments?resourceVersion=2&resourceVersionMatch=Exact", ""))
	s.lastRequest()
	if got := deliveries(); len(got) != 0 {
		t.Errorf("lists of others deliver %+v", got)
	}
	s.read(s.request(http.MethodGet, "/apis/apps/v1/deployments?limit=500&resourceVersion=0", ""))
	s.read(s.request(http.MethodGet, "/apis/apps/v1/deployments?watch=true&resourceVersion=2", ""))
	var got []*Delivery
	testenv.Eventually(t, "the objects of the list and the event are delivered", func() error {
		if got = deliveries(); len(got) != 2 {
			return fmt.Errorf("%d deliveries", len(got))
		}
		return nil
	})
	if d := got[0]; !d.Initial || d.Type != "ADDED" || d.Object.Kind != "Deployment" || d.Object.Name != "web" || d.Change != nil {
		t.Errorf("listed: %+v", d)
	}
	if d := got[1]; d.Initial || d.Change == nil || len(d.Change.Fields) != 1 || d.Change.Fields[0].Path != "spec.replicas" {
		t.Errorf("changed: %+v", d)
	}
}

// TestDeliveryThatIsFasterThanTheAnswer shows a version by a watch before the write that made it is answered.
func TestDeliveryThatIsFasterThanTheAnswer(t *testing.T) {
	t.Parallel()
	object := func(version string, replicas int) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":%q},"spec":{"replicas":%d}}`, version, replicas)
	}
	next, seen := make(chan string), make(chan struct{})
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPatch {
			next <- `{"type":"MODIFIED","object":` + object("8", 3) + `}`
			<-seen
			fmt.Fprint(w, object("8", 3))
			return
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case event := <-next:
				fmt.Fprintln(w, event)
				w.(http.Flusher).Flush()
			}
		}
	})
	watched := bufio.NewReader(s.request(http.MethodGet, "/apis/apps/v1/deployments?watch=true", "").Body)
	next <- `{"type":"ADDED","object":` + object("7", 1) + `}`
	go func() {
		defer close(seen)
		for range 2 {
			if _, err := watched.ReadString('\n'); err != nil {
				t.Error(err)
			}
		}
		if err := s.lens.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	s.read(s.request(http.MethodPatch, "/apis/apps/v1/namespaces/shop/deployments/web", "{}", "Content-Type", "application/merge-patch+json"))
	got := s.lastRequest()
	if got.Change == nil || got.Change.None || len(got.Change.Fields) != 1 || got.Change.Fields[0].Path != "spec.replicas" || got.Change.From != "7" || got.Delivered == 0 {
		t.Errorf("the write is %+v, and changed %+v", got, got.Change)
	}
	if s.lens.Stream().Totals().Echoes != 1 {
		t.Errorf("%d echoes are counted", s.lens.Stream().Totals().Echoes)
	}
	// Written once more, it changes nothing.
	go func() { <-next }()
	again := s.request(http.MethodPatch, "/apis/apps/v1/namespaces/shop/deployments/web", "{}", "Content-Type", "application/merge-patch+json")
	s.read(again)
	testenv.Eventually(t, "the second write is recorded", func() error {
		if got := s.lastRequest(); got.ID == 2 {
			return errors.New("it is not")
		} else if got.Change == nil || !got.Change.None {
			return fmt.Errorf("it changed %+v", got.Change)
		}
		return nil
	})
}
