// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"
)

const ms = time.Millisecond

// sample is a campaign as it usually ends: a few findings, one of them flaky, some things left out.
func sample() *Report {
	return &Report{
		Format: 1, Opdock: "v0.9.0", Project: "ship", Campaign: "20261116T211500",
		Began: time.Date(2026, 11, 16, 21, 15, 0, 0, time.UTC), Took: 8*time.Minute + 12*time.Second, Budget: 10 * time.Minute,
		Seed: 7, Parallel: 4, Steps: []string{"create the samples", "change the samples", "delete the samples"},
		Reference: Reference{Runs: 2, Writes: 14, Objects: 6, Masked: 3, Marked: true},
		Families: []Family{
			{Name: "undisturbed", Planned: 2, Ran: 2, Clean: 2},
			{Name: "crash", Planned: 44, Ran: 44, Clean: 39, Failed: 1, Verdicts: map[string]int{"end-state": 3, "leftovers": 1}},
			{Name: "lost", Planned: 22, Ran: 22, Clean: 20, Verdicts: map[string]int{"counts": 2}},
			{Name: "refused", Planned: 88, Ran: 88, Clean: 87, Flaky: 1},
			{Name: "stale", Planned: 18, Ran: 18, Clean: 18},
			{Name: "drift", Planned: 40, Ran: 40, Clean: 40},
			{Name: "input", Planned: 120, Ran: 96, Clean: 90, Verdicts: map[string]int{"admission": 4, "panic": 2}},
		},
		Findings: []Finding{
			{
				ID: "lost-counts-77b02e", Severity: "medium", Family: "lost", Verdict: "counts",
				Title: "A second Service is created when the answer to the first create is lost.",
				Done:  "the create of Service default/ship landed; its answer did not arrive",
				Want:  "Service: 1 created, 0 deleted", Got: "Service: 2 created, 1 deleted",
				Object: "Service default/ship", Runs: []string{"lost-4", "lost-11"},
				Replay: "opdock prove --replay lost-counts-77b02e", Replays: 3, Again: 3,
			},
			{
				ID: "crash-end-state-3f9a1c", Severity: "high", Family: "crash", Verdict: "end-state",
				Title: "The Deployment keeps its old replicas after a crash between two writes.",
				Done:  "killed after the update of Service default/ship, before its answer arrived; restarted",
				Want:  "Deployment default/ship: spec.replicas 3", Got: "Deployment default/ship: spec.replicas 2",
				Object: "Deployment default/ship", Fields: []string{"spec.replicas", "status.replicas"},
				Story: []Line{
					{At: 2 * ms, Text: "Frigate default/ship updated by a user: spec.size 2 → 3"},
					{At: 9 * ms, Text: "reconcile Frigate default/ship begins"},
					{At: 14 * ms, Text: "update Service default/ship: spec.ports", Where: "internal/controller/frigate_controller.go:88"},
					{At: 15 * ms, Text: "the operator is killed", Fault: true},
					{At: 1204 * ms, Text: "the operator is restarted"},
					{At: 1391 * ms, Text: "reconcile Frigate default/ship begins: added"},
					{At: 1402 * ms, Text: "reconcile Frigate default/ship ends: nothing written"},
				},
				Where: []string{
					"internal/controller/frigate_controller.go:88 update services ship, which is disturbed",
					"internal/controller/deployment.go:19 apply deployments ship",
				},
				Runs: []string{"crash-12", "crash-13", "crash-31"}, Replay: "opdock prove --replay crash-end-state-3f9a1c", Replays: 3, Again: 3,
			},
			{
				ID: "refused-unsettled-b0c1d2", Severity: "low", Family: "refused", Verdict: "unsettled",
				Title: "The operator does not come to rest after three conflicts.", Done: "three updates of Frigate default/ship answered with 409",
				Want: "at rest within 30s", Got: "still writing after 30s", Runs: []string{"refused-60"},
				Replay: "opdock prove --replay refused-unsettled-b0c1d2", Replays: 3, Again: 1, Flaky: true,
			},
			{
				ID: "input-panic-90aa13", Severity: "high", Family: "input", Verdict: "panic",
				Title: "The operator panics when spec.template is empty.", Done: "patched Frigate default/ship: spec.template {}",
				Want:   "the value is refused at admission or reported in the status",
				Got:    "panic: runtime error: invalid memory address or nil pointer dereference\n\tcontroller.(*FrigateReconciler).deployment\n\t\tinternal/controller/deployment.go:41",
				Object: "Frigate default/ship", Fields: []string{"spec.template"}, Where: []string{"internal/controller/deployment.go:41", "internal/controller/frigate_controller.go:102:7 (Reconcile)"},
				Runs: []string{"input-7", "input-8"}, Replay: "opdock prove --replay input-panic-90aa13", Replays: 3, Again: 3,
			},
			{
				ID: "input-admission-51d7e0", Severity: "medium", Family: "input", Verdict: "admission",
				Title: "An image that cannot be pulled is reported as Ready.", Done: "patched Frigate default/ship: spec.image \"nowhere/none:0\"",
				Want: "condition Ready is not True", Got: "condition Ready is True", Object: "Frigate default/ship", Fields: []string{"status.conditions"},
				Runs: []string{"input-21", "input-22", "input-23", "input-24"}, Replay: "opdock prove --replay input-admission-51d7e0", Replays: 3, Again: 2,
			},
			{
				ID: "crash-leftovers-0c44fe", Severity: "medium", Family: "crash", Verdict: "leftovers",
				Title: "A ConfigMap without an owner remains after the Frigate is deleted.", Done: "killed after the create of ConfigMap default/ship-config; restarted",
				Want: "no ConfigMap", Got: "ConfigMap default/ship-config exists", Object: "ConfigMap default/ship-config",
				Runs: []string{"crash-2"}, Replay: "opdock prove --replay crash-leftovers-0c44fe", Replays: 3, Again: 3,
			},
		},
		NotTried: []NotTried{
			{Family: "upgrade", What: "taking over from an older version", Reason: "--upgrade-from is not set"},
			{Family: "input", What: "values of spec.template", Reason: "the budget was used up", Count: 24},
		},
		NoEffect: []string{"Robot spec.paused", "Robot spec.template.metadata"},
		Blind: []string{
			"The conversation between the operator and its application: simulated pods do not answer.",
			"What happens inside of containers, such as data that is lost.",
		},
	}
}

func clean() *Report {
	r := sample()
	r.Findings, r.NotTried = nil, nil
	for i := range r.Families {
		f := &r.Families[i]
		f.Planned, f.Clean, f.Failed, f.Flaky, f.Verdicts = f.Ran, f.Ran, 0, 0, nil
	}
	return r
}

func interrupted() *Report {
	r := sample()
	r.Interrupted, r.Took = true, 41*time.Second
	r.Families = r.Families[:3]
	r.Families[1].Ran, r.Families[1].Clean, r.Families[1].Failed = 12, 9, 0
	r.Families[1].Verdicts = map[string]int{"end-state": 3}
	r.Families[2] = Family{Name: "lost", Planned: 22}
	r.Findings = r.Findings[1:2]
	r.NotTried = r.NotTried[:1]
	return r
}

// broken is a campaign that was clean until the disk was full.
func broken() *Report {
	r := clean()
	r.Broken = "starting a cluster for a run: the disk that holds /tmp/opdock-672848033 is full; free some space"
	r.Families = r.Families[:2]
	r.Families[1].Planned, r.Families[1].Ran, r.Families[1].Clean, r.Families[1].Failed = 20, 12, 7, 5
	r.NotTried = []NotTried{{Family: "crash", What: "runs", Reason: "the last 5 runs broke down", Count: 8}}
	return r
}

// many has fifty findings of all verdicts.
func many() *Report {
	r := sample()
	r.Findings = nil
	for i := range r.Families {
		r.Families[i].Verdicts = map[string]int{}
	}
	for i := range 50 {
		verdict, family := verdicts[i%len(verdicts)].name, &r.Families[i%len(r.Families)]
		family.Verdicts[verdict]++
		id := fmt.Sprintf("%s-%s-%06x", family.Name, verdict, i*7919)
		r.Findings = append(r.Findings, Finding{
			ID: id, Severity: severities[i%3], Family: family.Name, Verdict: verdict,
			Title: fmt.Sprintf("Finding %d: %s", i, describe(verdicts, verdict).about), Done: "something", Want: "a", Got: "b",
			Runs: []string{fmt.Sprintf("run-%d", i)}, Replay: "opdock prove --replay " + id,
		})
	}
	return r
}

// long has values that fit nowhere.
func long() *Report {
	r := interrupted()
	f := &r.Findings[0]
	f.Want = "data " + strings.Repeat("0123456789abcdef", 200)
	f.Got = strings.TrimSpace(strings.Repeat("goroutine 7 [running] and so on\n\tmain.go:1\n", 60))
	f.Object = "ConfigMap " + strings.Repeat("very-long-namespace-", 12) + "/" + strings.Repeat("very-long-name-", 16)
	f.Story = nil
	for i := range 60 {
		f.Story = append(f.Story, Line{At: time.Duration(i*i) * 10 * ms, Text: fmt.Sprintf("write %d %s", i, strings.Repeat("x", i*8)), Fault: i == 20})
	}
	for i := range 30 {
		f.Fields = append(f.Fields, fmt.Sprintf("spec.template.spec.containers[%d].image", i))
	}
	return r
}

// hostile holds what someone wrote to attack the reader.
func hostile() *Report {
	r := sample()
	evil := "<script>alert('1')</script>\x1b[31mred\x07\u202e]]>&amp;\"'\x00\xff"
	r.Project, r.Steps, r.Blind, r.NoEffect = evil, []string{evil}, []string{evil}, []string{evil}
	r.NotTried = []NotTried{{Family: evil, What: evil, Reason: evil}}
	r.Families = append(r.Families, Family{Name: evil, Planned: 1, Ran: 1, Verdicts: map[string]int{evil: 1}})
	r.Findings = []Finding{{
		ID: evil, Severity: evil, Family: evil, Verdict: evil, Title: evil, Done: evil, Want: evil, Got: evil + "\n 1. forged\r\n" + evil,
		Object: evil, Fields: []string{evil}, Where: []string{"javascript:alert(1):3", "../<script>.go:12"}, Runs: []string{evil}, Replay: evil,
		Story: []Line{{Text: evil, Fault: true, Where: evil}},
	}}
	return r
}
