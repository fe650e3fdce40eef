// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	"github.com/opdock/opdock/internal/lens"
)

func TestWhere(t *testing.T) {
	to := func(verb, resource, subresource, name, kind string, source ...string) write {
		return write{Moment: Moment{Verb: verb, Resource: resource, Subresource: subresource, Namespace: "default", Name: name, Nth: 1}, object: kind, source: source}
	}
	c := &campaign{reference: []*stage{
		{writes: []write{
			to("create", "configmaps", "", "orders", "ConfigMap", "internal/pass/apply.go:12", "internal/controller/frigate.go:80"),
			to("patch", "frigates", "", "victory", "Frigate", "internal/controller/frigate.go:60"),
			to("patch", "frigates", "status", "victory", "Frigate", "internal/controller/frigate.go:99"),
			to("create", "secrets", "", "crew", "Secret"), // unknown
		}},
		{writes: []write{to("patch", "frigates", "status", "victory", "Frigate", "internal/controller/frigate.go:99")}},
	}}
	board := newSwitchboard(func(m Moment) Moment { return m })
	at := Moment{Verb: "patch", Resource: "frigates", Subresource: "status", Namespace: "default", Name: "victory", Nth: 1}
	board.step(&faults{})
	send := func(line string) {
		board.Request(t.Context(), &lens.Call{Request: lens.Request{ID: 1, Verb: "patch", Source: []string{line},
			Resource: lens.Resource{Resource: "frigates", Subresource: "status", Namespace: "default", Name: "victory"}}})
	}
	send("internal/controller/frigate.go:101")
	board.step(nil) // the next step begins, and counts from the start
	send("internal/controller/frigate.go:102")
	r := &run{campaign: c, board: board}
	const disturbed = "internal/controller/frigate.go:101 patch frigates/status victory, which is disturbed"
	for name, test := range map[string]struct {
		plan Plan
		o    Observation
		want []string
	}{
		"an object is missing": {Plan{Family: "crash", At: &at}, Observation{Step: 1, Verdict: "end-state", Object: "ConfigMap default/orders"}, []string{
			disturbed, "internal/pass/apply.go:12 create configmaps orders", "internal/controller/frigate.go:80 calls it",
		}},
		"nothing is disturbed by request": {Plan{Family: "drift"}, Observation{Step: 1, Verdict: "end-state", Object: "Frigate default/victory", Fields: []string{"spec.guns"}}, []string{
			"internal/controller/frigate.go:60 patch frigates victory",
		}},
		"a status": {Plan{Family: "drift"}, Observation{Step: 1, Verdict: "status", Object: "Frigate default/victory", Fields: []string{"status.phase"}}, []string{
			"internal/controller/frigate.go:99 patch frigates/status victory",
		}},
		"an object that another client writes": {Plan{Family: "drift"}, Observation{Step: 1, Verdict: "end-state", Object: "Pod default/orders"}, nil},
		"without a hook":                       {Plan{Family: "drift"}, Observation{Step: 1, Verdict: "end-state", Object: "Secret default/crew"}, nil},
		"a later step":                         {Plan{Family: "crash", At: &at}, Observation{Step: 9, Verdict: "panic"}, []string{disturbed}},
	} {
		t.Run(name, func(t *testing.T) {
			r.locate(&test.plan, &test.o)
			if !slices.Equal(test.o.Where, test.want) {
				t.Errorf("got %q, want %q", test.o.Where, test.want)
			}
		})
	}
}
