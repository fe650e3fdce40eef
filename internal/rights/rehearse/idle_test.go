// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/why"
)

// subject is an object of the group example.com.
func subject(kind, resource, name string) Subject {
	return Subject{Kind: Kind{"example.com", kind}, Resource: lens.Resource{Group: "example.com", Resource: resource, Namespace: "default", Name: name}}
}

func TestWhatShowsThatASampleIsReconciled(t *testing.T) {
	ships := lens.Resource{Group: "example.com", Version: "v1", Resource: "ships"}
	ship := ships
	ship.Namespace, ship.Name = "default", "one"
	marked := lens.Event{Process: &lens.Process{Started: true, Instrumented: true}}
	delivered := lens.Event{Delivery: &lens.Delivery{Resource: ships, Type: "ADDED", Object: &lens.Object{Group: "example.com", Kind: "Ship", Namespace: "default", Name: "one"}}}
	list := func(items int) lens.Event {
		return lens.Event{Request: &lens.Request{Verb: "list", Resource: ships, Status: 200, Items: items}}
	}
	reconcile := func(controller, name string) lens.Event {
		return lens.Event{Reconcile: &lens.Reconcile{ID: 1, Controller: controller, Namespace: "default", Name: name}}
	}
	request := func(verb string, status int) lens.Event {
		return lens.Event{Request: &lens.Request{Verb: verb, Resource: ship, Status: status}}
	}
	other := func(verb, resource string) lens.Event {
		return lens.Event{Request: &lens.Request{Verb: verb, Resource: lens.Resource{Version: "v1", Resource: resource, Namespace: "default", Name: "x"}, Status: 200}}
	}
	read := func(name string) lens.Event {
		return lens.Event{Read: &lens.Read{Reconcile: 1, Group: "example.com", Version: "v1", Kind: "Ship", Namespace: "default", Name: name}}
	}
	for name, test := range map[string]struct {
		events []lens.Event
		others []Subject
		want   bool
	}{
		"nothing":                                {},
		"a request names it":                     {events: []lens.Event{request("update", 200)}, want: true},
		"its requests are refused":               {events: []lens.Event{request("get", 403)}},
		"a watch delivers it":                    {events: []lens.Event{delivered}, want: true},
		"a list has objects":                     {events: []lens.Event{list(1)}, want: true},
		"an empty list":                          {events: []lens.Event{list(0)}},
		"marked, and only watched":               {events: []lens.Event{marked, list(1), delivered}},
		"marked, and reconciled":                 {events: []lens.Event{marked, delivered, reconcile("ship", "one")}, want: true},
		"marked, and another is reconciled":      {events: []lens.Event{marked, delivered, reconcile("ship", "two")}},
		"marked, and read in a reconcile":        {events: []lens.Event{marked, delivered, reconcile("fleet", "two"), read("one")}, want: true},
		"marked, and another is read":            {events: []lens.Event{marked, delivered, reconcile("fleet", "two"), read("two")}},
		"marked, and a loop without marks":       {events: []lens.Event{marked, delivered, other("create", "pods")}, want: true},
		"marked, and leader election":            {events: []lens.Event{marked, delivered, other("update", "leases")}},
		"marked, and certificates are rotated":   {events: []lens.Event{marked, delivered, other("update", "secrets"), reconcile("certificates", "x")}},
		"another kind with that name":            {events: []lens.Event{marked, reconcile("harbour-master", "one")}, others: []Subject{subject("HarbourMaster", "harbourmasters", "one")}},
		"its controller, and another kind":       {events: []lens.Event{marked, reconcile("harbour", "one"), reconcile("ship-controller", "one")}, others: []Subject{subject("Harbour", "harbours", "one")}, want: true},
		"a controller that is named differently": {events: []lens.Event{marked, reconcile("x", "one")}, others: []Subject{subject("Harbour", "harbours", "one")}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := newEvidence()
			for i := range test.events {
				v.add(&test.events[i])
			}
			one := subject("Ship", "ships", "one")
			if got := v.shows(one, append(test.others, one)); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestWhenARehearsalShowsNothing(t *testing.T) {
	ship := []Kind{{"example.com", "Ship"}}
	for name, test := range map[string]struct {
		idle     Idle
		unproven bool
		sentence string
	}{
		"all is well":                   {Idle{}, false, ""},
		"one kind has no controller":    {Idle{Untouched: ship}, false, "the operator reconciled no Ship"},
		"no kind was reconciled":        {Idle{Untouched: append(ship, Kind{"example.com", "Dock"}), All: true}, true, "the operator reconciled no Ship or Dock"},
		"a kind is missing":             {Idle{Untouched: ship, Lacking: []string{"kind Lamp of other.io"}}, true, "the operator reconciled no Ship; the cluster does not have kind Lamp of other.io"},
		"an optional kind is missing":   {Idle{Lacking: []string{"kind Lamp of other.io"}}, false, ""},
		"a controller did not start":    {Idle{Controllers: []string{"ship"}}, true, "controller ship did not start"},
		"one without a name":            {Idle{Controllers: []string{""}}, true, "a controller did not start"},
		"several controllers, no kinds": {Idle{Controllers: []string{"dock", "ship"}}, true, "controllers dock and ship did not start"},
	} {
		if got := test.idle.Unproven(); got != test.unproven {
			t.Errorf("%s: unproven is %t", name, got)
		}
		if got := test.idle.Sentence(); got != test.sentence {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// A sample that could not be created is not reconciled, and another one of its kind may be.
func TestSamplesThatWereLeftOut(t *testing.T) {
	ship, dock := subject("Ship", "ships", "one"), Subject{Kind: Kind{"example.com", "Dock"}, LeftOut: true}
	again := Subject{Kind: ship.Kind, LeftOut: true}
	w := &watching{shown: newEvidence()}
	w.shown.add(&lens.Event{Request: &lens.Request{Verb: "update", Status: 200, Resource: lens.Resource{Group: "example.com", Version: "v1", Resource: "ships", Namespace: "default", Name: "one"}}})
	if kinds, all := w.untouched([]Subject{ship, again, dock}); len(kinds) != 1 || kinds[0] != dock.Kind || all {
		t.Errorf("untouched are %+v, all is %t", kinds, all)
	}
	if kinds, all := w.untouched([]Subject{dock}); len(kinds) != 1 || !all {
		t.Errorf("if it is the only kind, untouched are %+v, all is %t", kinds, all)
	}
	if s := newStage(&crew{}, dock); s.mayBegin() {
		t.Error("the rehearsal waits for a sample that does not exist")
	}
}

// crew is an operator for tests that lacks kinds.
type crew struct {
	lacks     chan struct{}
	ended     chan struct{}
	completes int // how often there is something to install
	completed int
	lacking   []string
	idle      []string
	onRestart func()
}

func (c *crew) Ended() <-chan struct{} { return c.ended }
func (c *crew) Err() error             { return errors.New("exited with status 1") }
func (c *crew) Stop()                  {}
func (c *crew) Lacks() <-chan struct{} { return c.lacks }
func (c *crew) Lacking() []string      { return c.lacking }
func (c *crew) Idle() []string         { return c.idle }

func (c *crew) Complete(context.Context) (bool, error) {
	if c.completed == c.completes {
		return false, nil
	}
	c.completed++
	c.ended = make(chan struct{})
	if c.onRestart != nil {
		c.onRestart()
	}
	return true, nil
}

// newStage is a rehearsal with an operator that has sent a request.
func newStage(c *crew, subjects ...Subject) *stage {
	w := &watching{active: make(chan struct{}, 1), shown: newEvidence(), any: true}
	return &stage{
		Options:  &Options{Quiet: time.Millisecond, Patience: time.Minute, Subjects: func() []Subject { return subjects }},
		operator: c, watching: w,
	}
}

var nothing = Act{Name: "nothing", Do: func(context.Context) error { return nil }}

// An act is not over while a controller may still start: what it lacks is logged then.
func TestAnActWaitsForWhatTheOperatorLacks(t *testing.T) {
	c := &crew{lacks: make(chan struct{}, 1), ended: make(chan struct{}), completes: 1, idle: []string{"ship"}}
	c.onRestart = func() { c.idle = nil }
	s := newStage(c)
	go func() { c.lacks <- struct{}{} }()
	outcome, err := s.perform(t.Context(), nothing)
	if err != nil || outcome.Busy || c.completed != 1 {
		t.Errorf("it was completed %d times, with %+v and %v", c.completed, outcome, err)
	}
}

func TestAnOperatorThatEndsBecauseItLacksAKind(t *testing.T) {
	c := &crew{ended: make(chan struct{}), completes: 1}
	close(c.ended)
	if _, err := newStage(c).perform(t.Context(), nothing); err != nil || c.completed != 1 {
		t.Errorf("it was completed %d times: %v", c.completed, err)
	}
	close(c.ended)
	var ended *EndedError
	if _, err := newStage(c).perform(t.Context(), nothing); !errors.As(err, &ended) {
		t.Errorf("with nothing to install, the error is %v", err)
	}
}

// An act waits until a sample is reconciled, however long the operator is quiet before.
func TestAnActWaitsForAReconcile(t *testing.T) {
	ship := subject("Ship", "ships", "one")
	c := &crew{ended: make(chan struct{})}
	s := newStage(c, ship)
	asked := make(chan struct{}, 1)
	s.Subjects = func() []Subject {
		select {
		case asked <- struct{}{}:
		default:
		}
		return []Subject{ship}
	}
	go func() {
		<-asked // it was quiet, and that was not enough
		s.watching.count(&lens.Event{Reconcile: &lens.Reconcile{ID: 1, Controller: "ship", Namespace: "default", Name: "one"}})
	}()
	if outcome, err := s.perform(t.Context(), nothing); err != nil || outcome.Busy {
		t.Errorf("got %+v and %v", outcome, err)
	}
	if idle := s.idle(); idle.Unproven() {
		t.Errorf("it is taken to do nothing: %s", idle.Sentence())
	}
}

// What cannot be installed is waited for only if the reason is unknown, and only once.
func TestAnActDoesNotWaitForWhatCannotCome(t *testing.T) {
	for name, change := range map[string]func(*stage, *crew){
		"a kind is missing":     func(_ *stage, c *crew) { c.lacking = []string{"kind Lamp of other.io"} },
		"a request was refused": func(s *stage, _ *crew) { s.watching.lacked = true },
		"it had time before":    func(s *stage, _ *crew) { s.waited = true },
	} {
		c := &crew{ended: make(chan struct{}), idle: []string{"ship"}}
		s := newStage(c, subject("Ship", "ships", "one"))
		change(s, c)
		if _, err := s.perform(t.Context(), nothing); err != nil || !s.waited && s.mayBegin() {
			t.Errorf("%s: %v", name, err)
		}
		if idle := s.idle(); !idle.Unproven() || !idle.All {
			t.Errorf("%s: it is taken to work: %+v", name, idle)
		}
	}
	c := &crew{ended: make(chan struct{}), idle: []string{"ship"}}
	s := newStage(c)
	s.Patience = 10 * time.Millisecond
	if outcome, err := s.perform(t.Context(), nothing); err != nil || outcome.Busy || !s.waited {
		t.Errorf("a controller that does not start: %+v, waited %t, %v", outcome, s.waited, err)
	}
}

// TestAnOperatorThatIgnoresItsSamples is refused nothing, because it requests nothing that matters.
func TestAnOperatorThatIgnoresItsSamples(t *testing.T) {
	testenv.ControlPlane(t)
	h := newHarbor(t, clustertest.Shared(t), clustertest.Namespace(t))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sample := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}}}
	acts, subjects := Samples(h.admin, []*unstructured.Unstructured{sample}, in(h.namespace), func(text string) { t.Error(text) })
	result, err := Run(t.Context(), Options{
		Upstream: h.cluster.Config(), Command: []string{self}, Env: append(os.Environ(), operatorVariable+"="+idler), Log: os.Stderr,
		Recording: filepath.Join(t.TempDir(), "one.jsonl"), Quiet: 100 * time.Millisecond, Patience: 10 * time.Second, Acts: acts, Subjects: subjects,
	})
	if err != nil {
		t.Fatal(err)
	}
	if refused := refusals(result.Acts); len(refused) > 0 || !result.Idle.Unproven() || result.Idle.Sentence() != "the operator reconciled no ConfigMap" {
		t.Errorf("it was refused %q and judged %+v", refused, result.Idle)
	}
}

// Older operators elect a leader by a ConfigMap, which they write every few seconds. An act does not wait for the end of that.
func TestLeaderElectionByAConfigMap(t *testing.T) {
	w := &watching{shown: newEvidence()}
	lock := lens.Resource{Version: "v1", Resource: "configmaps", Namespace: "system", Name: "leader"}
	object := &lens.Object{Version: "v1", Kind: "ConfigMap", Namespace: "system", Name: "leader"}
	other := lens.Resource{Version: "v1", Resource: "configmaps", Namespace: "default", Name: "settings"}
	all := lens.Resource{Version: "v1", Resource: "configmaps"}
	change := func(path string) *lens.Change { return &lens.Change{Fields: []why.Change{{Path: path}}} }
	renewed := change(`metadata.annotations["control-plane.alpha.kubernetes.io/leader"]`)
	for _, step := range []struct {
		name  string
		event lens.Event
		busy  bool
	}{
		{"a read, not known to be about a leader", lens.Event{Request: &lens.Request{Verb: "get", Resource: lock}}, true},
		{"the renewal", lens.Event{Request: &lens.Request{Verb: "update", Resource: lock, Change: renewed}}, false},
		{"a read", lens.Event{Request: &lens.Request{Verb: "get", Resource: lock}}, false},
		{"its event", lens.Event{Delivery: &lens.Delivery{Type: "MODIFIED", Resource: all, Object: object, Change: renewed}}, false},
		{"another object", lens.Event{Request: &lens.Request{Verb: "update", Resource: other, Change: change("data.size")}}, true},
	} {
		if busy := w.count(&step.event); busy != step.busy {
			t.Errorf("%s shows that the operator is busy: %v", step.name, busy)
		}
	}
}

// TestRightsOfImpersonatedUsers are not the operator's.
func TestRightsOfImpersonatedUsers(t *testing.T) {
	w := &watching{shown: newEvidence()}
	for _, message := range []string{
		`secrets is forbidden: User "tenant" cannot create resource "secrets" in API group "" in the namespace "a"`,
		`users "tenant" is forbidden: User "system:serviceaccount:s:o" cannot impersonate resource "users" in API group "" at the cluster scope`,
	} {
		w.count(&lens.Event{Request: &lens.Request{Verb: "create", Resource: lens.Resource{Version: "v1", Resource: "secrets", Namespace: "a"}, Status: 403, Message: message, As: "tenant"}})
	}
	_, refused, denied := w.take()
	if len(refused) != 1 || !strings.Contains(refused[0].Message, "cannot impersonate") || len(denied) != 1 {
		t.Errorf("%v are refused and %v are denied", refused, denied)
	}
}

// TestOnlyMissingRightsAreRefusals tells apart what has the same status.
func TestOnlyMissingRightsAreRefusals(t *testing.T) {
	w := &watching{shown: newEvidence()}
	for _, message := range []string{
		`secrets is forbidden: User "system:serviceaccount:s:o" cannot create resource "secrets" in API group "" in the namespace "a"`,
		`secrets "x" is forbidden: unable to create new content in namespace a because it is being terminated`,
	} {
		w.count(&lens.Event{Request: &lens.Request{Verb: "create", Resource: lens.Resource{Version: "v1", Resource: "secrets", Namespace: "a"}, Status: 403, Message: message}})
	}
	if text := w.refusals(); !strings.HasPrefix(text, " (2 requests were refused") {
		t.Errorf("for an act that does not finish, it says %q", text)
	}
	requests, refused, denied := w.take()
	if requests != 2 || len(refused) != 1 || !strings.Contains(refused[0].Message, "cannot create") || len(denied) != 1 {
		t.Errorf("of %d requests, %v are refused and %v are denied", requests, refused, denied)
	}
}
