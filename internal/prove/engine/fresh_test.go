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
	service := []compare.Difference{{Object: "Service default/a", Path: "spec.port", Want: "81", Got: "80"}}
	for name, test := range map[string]struct {
		before, now, fresh string // the condition before the change, after it, and after the fresh start
		found              []compare.Difference
		event              *corev1.Event
		want               bool
	}{
		"nothing":                                 {"Ready True", "Ready True", "Ready True", service, nil, false},
		"neither side succeeds":                   {"Ready True", "Ready False", "Ready False", service, nil, true},
		"it is never ready":                       {"Ready False", "Ready False", "Ready False", service, nil, false},
		"a condition":                             {"Ready True", "Ready False", "Ready True", service, nil, true},
		"only a condition differs":                {"Ready True", "Ready False", "Ready True", nil, nil, false},
		"a message":                               {"Ready True", "Ready True the port cannot be changed", "Ready True", service, nil, true},
		"a warning about the custom resource":     {"Ready True", "Ready True", "Ready True", service, warning("Frigate", "a", began), true},
		"a warning about the object":              {"Ready True", "Ready True", "Ready True", service, warning("Service", "a", began), true},
		"a warning about another object":          {"Ready True", "Ready True", "Ready True", service, warning("Service", "b", began), false},
		"a warning from a time before the change": {"Ready True", "Ready True", "Ready True", service, warning("Frigate", "a", began.Add(-time.Second)), false},
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
			got, err := r.reports(t.Context(), 0, now, fresh, test.found, c.statusDeviates(now, fresh, nil), began)
			if err != nil || got != test.want {
				t.Errorf("reported: %v (%v), not %v", got, err, test.want)
			}
		})
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
		conditions []string
		differs    bool
	}{
		"as before":                         {[]string{"Ready True", "Resized True"}, false},
		"also differs between equal runs":   {[]string{"Ready True", "Resized True", "Synced True"}, false},
		"another condition":                 {[]string{"Ready False", "Resized True"}, true},
		"another condition, and not before": {[]string{"Ready True", "Stalled True"}, true},
	} {
		now := frigateSaying(t, test.conditions...)
		if got := c.agree(&Plan{Step: 1}, now, fresh, hide); got == test.differs {
			t.Errorf("%s: agrees: %v", name, got)
		}
		reported, err := r.reports(t.Context(), 0, now, fresh, service, c.statusDeviates(now, fresh, hide), time.Time{})
		if err != nil || reported != test.differs {
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
