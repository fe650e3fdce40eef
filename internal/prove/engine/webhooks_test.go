// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/world"
)

// TestWritesWhileTheOperatorIsDead is about a step that changes several custom resources, and an operator with webhooks that is killed
// after the first of them.
func TestWritesWhileTheOperatorIsDead(t *testing.T) {
	const down = `{"kind":"Status","code":500,"message":"Internal error occurred: failed calling webhook \"frigates.sea.example.com\": failed to call webhook: Post \"https://127.0.0.1:4711/mutate\": dial tcp 127.0.0.1:4711: connect: connection refused"}`
	const converting = `{"kind":"Status","code":500,"message":"conversion webhook for sea.example.com/v1, Kind=Frigate failed: Post \"https://127.0.0.1:4711/convert\": EOF"}`
	dead := errors.New("the operator does not stay up")
	for about, test := range map[string]struct {
		answer  string
		deaths  int // how often it has to be started again
		failing error
		revived int
		ok      bool
	}{
		"it is dead":                  {down, 1, nil, 1, true},
		"it dies twice":               {down, 2, nil, 2, true},
		"it is dead, and converts":    {converting, 1, nil, 1, true},
		"it does not stay up":         {down, 1, dead, 1, false},
		"it runs, and does not serve": {down, 0, nil, 0, false},
		"another error":               {`{"kind":"Status","code":500,"message":"etcdserver: request timed out"}`, 1, nil, 0, false},
	} {
		t.Run(about, func(t *testing.T) {
			serves, revived := false, 0
			var bodies []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				body, err := io.ReadAll(request.Body)
				if err != nil {
					t.Error(err)
				}
				bodies = append(bodies, string(body))
				if !serves {
					w.WriteHeader(http.StatusInternalServerError)
					fmt.Fprint(w, test.answer)
				}
			}))
			defer server.Close()
			client := &http.Client{Transport: &reviving{http.DefaultTransport, func(context.Context) (bool, error) {
				if revived == test.deaths {
					return false, nil
				}
				revived++
				serves = revived == test.deaths
				return true, test.failing
			}}}
			response, err := client.Post(server.URL+"/apis/sea.example.com/v1/frigates", "application/json", strings.NewReader("sail"))
			if !errors.Is(err, test.failing) {
				t.Fatalf("got %v, want %v", err, test.failing)
			}
			if err == nil {
				defer response.Body.Close()
				rest, err := io.ReadAll(response.Body)
				if err != nil || (response.StatusCode == http.StatusOK) != test.ok || !test.ok && string(rest) != test.answer {
					t.Errorf("got %s %q, %v", response.Status, rest, err)
				}
			}
			if revived != test.revived || slices.ContainsFunc(bodies, func(body string) bool { return body != "sail" }) {
				t.Errorf("it was started %d times, and the requests were %q", revived, bodies)
			}
		})
	}
}

// TestRequestsThatMayHaveHadTheirEffect is about an operator that ends while it converts a custom resource for an answer. What is sent
// again then may happen twice.
func TestRequestsThatMayHaveHadTheirEffect(t *testing.T) {
	const old, stored = "sea.example.com/v1", "sea.example.com/v2"
	for about, test := range map[string]struct {
		method, kind string
		converted    string
		repeated     bool
	}{
		"a read":                                {http.MethodGet, "", stored, true},
		"an update":                             {http.MethodPut, "application/json", stored, true},
		"a merge patch":                         {http.MethodPatch, "application/merge-patch+json", stored, true},
		"an application":                        {http.MethodPatch, "application/apply-patch+yaml", stored, true},
		"a deletion":                            {http.MethodDelete, "application/json", stored, true},
		"a patch that adds to a list":           {http.MethodPatch, "application/json-patch+json", stored, false},
		"a creation":                            {http.MethodPost, "application/json", stored, false},
		"a patch that could not be stored":      {http.MethodPatch, "application/json-patch+json", old, true},
		"a creation that could not be stored":   {http.MethodPost, "application/json", old, true},
		"a creation in a version named like it": {http.MethodPost, "application/json", old + "beta1", false},
	} {
		t.Run(about, func(t *testing.T) {
			sent, revived := 0, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if sent++; revived == 0 {
					w.WriteHeader(http.StatusInternalServerError)
					fmt.Fprintf(w, `{"kind":"Status","code":500,"message":"conversion webhook for %s, Kind=Frigate failed: Post \"https://127.0.0.1:4711/convert\": EOF"}`, test.converted)
				}
			}))
			defer server.Close()
			client := &http.Client{Transport: &reviving{http.DefaultTransport, func(context.Context) (bool, error) {
				revived++
				return true, nil
			}}}
			request, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+"/apis/"+old+"/namespaces/default/frigates", strings.NewReader("sail"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", test.kind)
			response, err := client.Do(request)
			if err == nil {
				defer response.Body.Close()
			}
			if repeated := err == nil && response.StatusCode == http.StatusOK; repeated != test.repeated || !repeated && whyUnjudged(err) != mayBeDone {
				t.Errorf("it is sent again: %v, %v", repeated, err)
			}
			if want := map[bool]int{true: 2, false: 1}[test.repeated]; sent != want || revived != 1 {
				t.Errorf("it was sent %d times, and the operator was started %d times", sent, revived)
			}
		})
	}
}

// TestOperatorsWithWebhooksAreNotLate says why, and tries the rest.
func TestOperatorsWithWebhooksAreNotLate(t *testing.T) {
	victory := sceneObject("Frigate", "victory")
	c := sceneOf([]*unstructured.Unstructured{victory}, nil, sceneState(victory), sceneState(victory), world.State{})
	for _, serves := range []bool{false, true} {
		c.servesWebhooks, c.unplanned = serves, nil
		g := newGathering(c, time.Now())
		g.plan(orderPlans(c))
		late := 0
		for _, p := range g.waiting {
			if p.Variant == operatorLate {
				late++
			}
		}
		told := 0
		for _, one := range c.unplanned {
			if one.Family == "order" && one.Reason == needsOperator {
				told += one.Count
			}
		}
		steps := len(c.o.Steps)
		if serves && (late != 0 || told != steps) || !serves && (late != steps || told != 0) {
			t.Errorf("with webhooks %v: the operator starts late in %d runs, and %d runs are reported as not tried", serves, late, told)
		}
		if len(g.waiting) == late {
			t.Errorf("with webhooks %v: nothing else is tried", serves)
		}
	}
	var unjudged *unjudgedError // a plan of an earlier campaign
	if _, err := reorder(&run{campaign: c}, &Plan{Family: "order", Variant: operatorLate}); !errors.As(err, &unjudged) {
		t.Errorf("got %v, want a run that is not judged", err)
	}
}
