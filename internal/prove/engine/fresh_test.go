// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// TestReports has what users can see of a change that was not carried out.
func TestReports(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	warning := func(kind, name string, at time.Time) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "default"}, Type: corev1.EventTypeWarning, Message: "cannot shrink",
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "default", Name: name}, LastTimestamp: metav1.NewTime(at),
		}
	}
	from := func(component string, e *corev1.Event) *corev1.Event {
		e.Source.Component = component
		return e
	}
	service := []compare.Difference{{Object: "Service default/a", Path: "spec.port", Want: "81", Got: "80"}}
	said := map[string]bool{"|cannot shrink": true}
	for name, test := range map[string]struct {
		before, now, fresh string // the condition before the change, after it, and after the fresh start
		found              []compare.Difference
		event              *corev1.Event
		want               bool
		said               map[string]bool
	}{
		"nothing":                                 {"Ready True", "Ready True", "Ready True", service, nil, false, nil},
		"neither side succeeds":                   {"Ready True", "Ready False", "Ready False", service, nil, true, nil},
		"it is never ready":                       {"Ready False", "Ready False", "Ready False", service, nil, false, nil},
		"it is not ready any more":                {"Ready True", "Ready False", "Ready True", service, nil, false, nil},
		"only a condition differs":                {"Ready True", "Ready False", "Ready True", nil, nil, false, nil},
		"a message":                               {"Ready True", "Ready True the port cannot be changed", "Ready True", service, nil, true, nil},
		"a warning about the custom resource":     {"Ready True", "Ready True", "Ready True", service, warning("Frigate", "a", began), true, nil},
		"a warning about the object":              {"Ready True", "Ready True", "Ready True", service, warning("Service", "a", began), true, nil},
		"a warning about another object":          {"Ready True", "Ready True", "Ready True", service, warning("Service", "b", began), false, nil},
		"a warning from a time before the change": {"Ready True", "Ready True", "Ready True", service, warning("Frigate", "a", began.Add(-time.Second)), false, nil},
		"it is still at work":                     {"Ready True", "Ready False 2 of 3 pods are updated", "Ready True", service, nil, false, nil},
		"a condition":                             {"Ready True", "Stalled True", "Ready True", service, nil, true, nil},
		"a condition of the operator's own":       {"Ready True", "ResizeFailed True", "Ready True", service, nil, true, nil},
		"a condition that is not true":            {"Ready True", "ResizeFailed Unknown", "Ready True", service, nil, false, nil},
		"it is not ready, and says why":           {"Ready True", "Ready False volume claims cannot be changed", "Ready True", service, nil, true, nil},
		"only a condition about trouble":          {"Ready True", "Stalled True", "Ready True", nil, nil, false, nil},
		"a warning of the operator":               {"Ready True", "Ready True", "Ready True", service, from("frigate-controller", warning("Service", "a", began)), true, nil},
		"a warning of Kubernetes":                 {"Ready True", "Ready True", "Ready True", service, from("horizontal-pod-autoscaler", warning("Service", "a", began)), false, nil},
		"a warning that is no news":               {"Ready True", "Ready True", "Ready True", service, warning("Frigate", "a", began), false, said},
	} {
		t.Run(name, func(t *testing.T) {
			c := &campaign{mask: compare.NewMask(), reference: []*stage{{state: frigateSaying(t, test.before).state}}}
			c.o.Subjects = []*unstructured.Unstructured{{Object: map[string]any{
				"apiVersion": "sea/v1", "kind": "Frigate", "metadata": map[string]any{"name": "a", "namespace": "default"},
			}}}
			objects := fake.NewClientBuilder()
			if test.event != nil {
				objects.WithObjects(test.event)
			}
			r := &run{campaign: c, objects: objects.Build()}
			now, fresh := frigateSaying(t, test.now), frigateSaying(t, test.fresh)
			got, err := r.reports(t.Context(), 0, now, fresh, &differing{test.found, c.statusDeviates(now, fresh, nil)}, test.said, began)
			if err != nil || got != test.want {
				t.Errorf("reported: %v (%v), not %v", got, err, test.want)
			}
		})
	}
}

// TestWarningsThatAreKnown is about an operator that warns each time.
func TestWarningsThatAreKnown(t *testing.T) {
	event := func(name, kind, reason, message string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Type: kind, Reason: reason, Message: message}
	}
	r := &run{objects: fake.NewClientBuilder().WithObjects(event("a", "Warning", "NoBackup", "no backup since 7 days"), event("b", "Normal", "Created", "created")).Build()}
	said, err := r.warnings(t.Context())
	if err != nil || len(said) != 1 || !said[wordsOfEvent(event("c", "Warning", "NoBackup", "no backup since 8 days"))] {
		t.Errorf("got %v (%v)", said, err)
	}
}

// TestStatusThatDiffersAnyway has an operator that tells after a step of the scenario what a fresh start does not have to tell.
func TestStatusThatDiffersAnyway(t *testing.T) {
	c := &campaign{mask: compare.NewMask(), reference: []*stage{{state: frigateSaying(t, "Ready True").state}}}
	c.o.Subjects = []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "sea/v1", "kind": "Frigate", "metadata": map[string]any{"name": "a", "namespace": "default"},
	}}}
	c.mask.Fields["Frigate default/a"] = map[string]bool{"status.conditions[Synced].status": true}
	fresh := frigateSaying(t, "Ready True")
	hide := c.maskOf(frigateSaying(t, "Ready True", "Resized True"), fresh)
	r := &run{campaign: c, objects: fake.NewClientBuilder().Build()}
	service := []compare.Difference{{Object: "Service default/a", Path: "spec.port", Want: "81", Got: "80"}}
	for name, test := range map[string]struct {
		conditions        []string
		differs, reported bool
	}{
		"as before":                         {[]string{"Ready True", "Resized True"}, false, false},
		"also differs between equal runs":   {[]string{"Ready True", "Resized True", "Synced True"}, false, false},
		"another condition":                 {[]string{"Ready False", "Resized True"}, true, false},
		"another condition, and not before": {[]string{"Ready True", "Stalled True"}, true, true},
	} {
		now := frigateSaying(t, test.conditions...)
		if got := c.agree(&Plan{Step: 1}, now, fresh, hide); got == test.differs {
			t.Errorf("%s: agrees: %v", name, got)
		}
		reported, err := r.reports(t.Context(), 0, now, fresh, &differing{service, c.statusDeviates(now, fresh, hide)}, nil, time.Time{})
		if err != nil || reported != test.reported {
			t.Errorf("%s: reported: %v (%v)", name, reported, err)
		}
	}
}

// TestPanicAfterFreshStart has the run that compares the scenario itself: an operator that panics leaves nothing to compare, and that
// is what counts.
func TestPanicAfterFreshStart(t *testing.T) {
	c := &campaign{}
	p := &Plan{Family: "input", Variant: unchanged, Step: 2, Fresh: true}
	for _, wrong := range [][]*Observation{nil, {{Family: "input", Verdict: "panic", Title: "The operator panics"}}} {
		g := newGathering(c, time.Now())
		result := &outcome{plan: p, wrong: wrong}
		if c.isComparable(p, &noStartError{"the operator does not come to rest"}, result) {
			t.Error("there is nothing to compare with")
		}
		g.add(result)
		again := *result
		g.add(&again)
		if len(g.findings) != len(wrong) || (len(g.skipped) == 0) != (len(wrong) > 0) {
			t.Errorf("%d findings, %d skipped, with %d observations", len(g.findings), len(g.skipped), len(wrong))
		}
		for _, f := range g.findings {
			if f.Again != 1 {
				t.Errorf("%s was seen again %d times", f.ID, f.Again)
			}
		}
	}
}

// TestDeadOperatorIsAFinding has an operator that does not stay up. Another error means that the run broke down.
func TestDeadOperatorIsAFinding(t *testing.T) {
	r := &run{campaign: &campaign{}, activity: newActivity(), exits: []string{"exited with 1: panic: no captain"}}
	before := []*Observation{{Verdict: "update"}}
	wrong, err := r.orDead(1, before, &deadError{})
	if err != nil || len(wrong) != 2 || wrong[1].Verdict != "exit" || wrong[1].Step != 1 {
		t.Errorf("%v (%v)", wrong, err)
	}
	full := errors.New("no space left on device")
	if wrong, err := r.orDead(1, before, full); !errors.Is(err, full) || len(wrong) != 1 {
		t.Errorf("%v (%v)", wrong, err)
	}
}

// TestFreshStartIsTriedOnce has a campaign whose specs cannot be created at once: each further attempt would take as long as a run.
func TestFreshStartIsTriedOnce(t *testing.T) {
	impossible := &noStartError{"no such class"}
	c := &campaign{noFresh: impossible} // without clusters: another attempt would panic
	if _, err := c.learnFresh(t.Context(), 1); !errors.Is(err, impossible) {
		t.Errorf("%v", err)
	}
}

// TestIntervalsOfASpec is about operators that look at what others have changed only now and then, as the user has told them.
func TestIntervalsOfASpec(t *testing.T) {
	const frigateName = "Frigate default/victory"
	port := Plan{Object: "Harbour default/port"}
	for about, test := range map[string]struct {
		spec  string
		plan  Plan
		timer time.Duration
		want  string
	}{
		"an hour":                    {"{refreshInterval: 1h}", port, 0, "spec.refreshInterval of " + frigateName},
		"ten minutes":                {"{refreshInterval: 10m}", port, 10 * time.Minute, "spec.refreshInterval of " + frigateName},
		"its own change":             {"{refreshInterval: 1h}", Plan{Object: frigateName}, 0, ""},
		"changes in the scenario":    {"{refreshInterval: 1h}", Plan{Variant: unchanged}, 0, ""},
		"a second":                   {"{refreshInterval: 1s}", port, time.Second, ""},
		"a timer for something else": {"{refreshInterval: 10m}", port, 15 * time.Minute, ""},
		"some other duration":        {"{retentionPeriod: 1h}", port, 0, ""},
		"no duration":                {"{interval: often}", port, 0, ""},
	} {
		c := sailing()
		c.o.Settling = DefaultSettling
		live := frigate()
		live.Object["spec"] = read(t, "{apiVersion: v1, kind: Any, spec: "+test.spec+"}").Object["spec"]
		key, _ := find(c.reference[0].state, live)
		if got := c.looksAgain(&test.plan, world.State{key: live}, map[string]time.Duration{"frigate": test.timer}); got != test.want {
			t.Errorf("%s: got %q", about, got)
		}
	}
}
