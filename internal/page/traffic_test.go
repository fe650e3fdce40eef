// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A page that comes late gets what is kept in messages of bounded size, and one that comes back only what it has missed.
func TestStreamHasTraffic(t *testing.T) {
	traffic := NewTraffic()
	for range trafficBatch + 10 {
		traffic.Add(Exchange{Verb: "get", Resource: "pods"})
	}
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	server := serve(t, Options{Traffic: traffic, Until: until, Rights: func(context.Context) (any, error) { return 1, nil }})
	follower := followStream(t, server, "")
	var whole treeMessage
	follower.next(t, "tree", &whole)
	if !whole.Traffic || !whole.Rights || !whole.Until.Equal(until) {
		t.Errorf("it begins with %+v", whole)
	}
	var first, second, third trafficMessage
	follower.next(t, "traffic", &first)
	follower.next(t, "traffic", &second)
	if len(first.Exchanges) != trafficBatch || len(second.Exchanges) != 10 || first.Lost+second.Lost != 0 {
		t.Errorf("there are %d, then %d", len(first.Exchanges), len(second.Exchanges))
	}
	traffic.Add(Exchange{Verb: "list", Resource: "pods", Note: "no limit"})
	followStream(t, server, follower.id).next(t, "traffic", &third)
	if len(third.Exchanges) != 1 || third.Exchanges[0].Verb != "list" {
		t.Errorf("who comes back is told %+v", third)
	}
}

// What is not kept any more is counted, but not for those who were not there.
func TestTrafficIsBounded(t *testing.T) {
	traffic := NewTraffic()
	traffic.Add(Exchange{})
	_, last := traffic.since(0)
	for range 2 * keptTraffic {
		traffic.Add(Exchange{})
	}
	message, _ := traffic.since(last)
	if len(traffic.kept) > 2*keptTraffic || message.Lost == 0 {
		t.Errorf("%d are kept, and %d lost", len(traffic.kept), message.Lost)
	}
	server := serve(t, Options{Traffic: traffic})
	var first trafficMessage
	followStream(t, server, "").next(t, "traffic", &first)
	if first.Lost != 0 {
		t.Errorf("a new reader has missed %d", first.Lost)
	}
}

func TestRightsAreServed(t *testing.T) {
	for _, one := range []struct {
		name   string
		rights func(context.Context) (any, error)
		status int
		body   string
	}{
		{"known", func(context.Context) (any, error) { return map[string]string{"granted": "Role a"}, nil }, http.StatusOK, `{"granted":"Role a"}`},
		{"no record", nil, http.StatusNotFound, "no record of the rights"},
		{"unreadable", func(context.Context) (any, error) { return nil, errors.New("line 3 of role.yaml") }, http.StatusInternalServerError, "line 3 of role.yaml"},
	} {
		t.Run(one.name, func(t *testing.T) {
			server := serve(t, Options{Rights: one.rights})
			response, err := server.Client().Get(server.URL + "/api/rights")
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			var body json.RawMessage
			if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != one.status || !strings.Contains(string(body), one.body) {
				t.Errorf("%d: %s", response.StatusCode, body)
			}
		})
	}
}
