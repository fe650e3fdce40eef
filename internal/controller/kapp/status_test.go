// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "github.com/opdock/opdock/api/app/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	"github.com/opdock/opdock/internal/flow"
)

func condition(conditionType string, status metav1.ConditionStatus, generation int64, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, ObservedGeneration: generation, Reason: reason, Message: message}
}

func TestAssess(t *testing.T) {
	for _, test := range []struct {
		name            string
		conditions      []metav1.Condition
		state           kappv1.ComponentState
		reason, message string
	}{
		{"new", nil, "Progressing", "", "its controller has not reconciled it yet"},
		{"ready", []metav1.Condition{condition("Ready", "True", 2, "Ready", "all is well")}, "Ready", "", ""},
		{"ready before it was changed", []metav1.Condition{condition("Ready", "True", 1, "Ready", "")}, "Progressing", "", "its controller has not reconciled it yet"},
		{"on its way", []metav1.Condition{condition("Ready", "False", 2, "RollingOut", "1 of 2")}, "Progressing", "", "1 of 2"},
		{
			"stalled", []metav1.Condition{condition("Ready", "False", 2, "X", "no"), condition("Stalled", "True", 2, "X", "no image")},
			"Stalled", ReasonComponentStalled, "no image",
		},
		{
			"stalled before it was changed", []metav1.Condition{condition("Ready", "False", 2, "RollingOut", "1 of 2"), condition("Stalled", "True", 1, "X", "no image")},
			"Progressing", "", "1 of 2",
		},
		{
			"not stalled any more", []metav1.Condition{condition("Ready", "True", 2, "Ready", ""), condition("Stalled", "False", 2, "X", "")},
			"Ready", "", "",
		},
		{"suspended", []metav1.Condition{condition("Ready", "Unknown", 2, "Suspended", "")}, "Stalled", ReasonComponentSuspended, "it is suspended"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &part{resource: &resource{kind: componentKinds()[0]}}
			p.assess(&appv1.AppService{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: appv1.AppServiceStatus{Conditions: test.conditions}})
			if p.state != test.state || p.reason != test.reason || p.message != test.message || !p.exists {
				t.Errorf("%+v", p)
			}
		})
	}
}

func partOf(name string, state kappv1.ComponentState) *part {
	return &part{
		component: &kappv1.Component{Name: name}, state: state, reason: "Because", message: "of " + name,
		resource: &resource{kind: componentKinds()[0], name: "store-" + name},
	}
}

func TestVerdict(t *testing.T) {
	ready, waiting, progressing := partOf("a", "Ready"), partOf("b", "Waiting"), partOf("c", "Progressing")
	stalled, alike := partOf("d", "Stalled"), partOf("e", "Stalled")
	alike.message = stalled.message
	retried := partOf("f", "Stalled")
	retried.retry = true
	failed := partOf("g", "Progressing")
	failed.failure = errors.New("no connection")
	gone := []doomed{{owned: owned{resource: resource{kind: componentKinds()[0], name: "old"}}}}
	for _, test := range []struct {
		name    string
		parts   []*part
		doomed  []doomed
		is      func(error) bool
		message string
	}{
		{"ready", []*part{ready}, nil, func(err error) bool { return err == nil }, ""},
		{"not ready", []*part{ready, waiting, progressing}, nil, flow.IsWaiting, "1 of 3 components are ready; waiting for b, c"},
		{"pruning", []*part{ready}, gone, flow.IsWaiting, "Deleting AppService old"},
		{"stalled", []*part{waiting, stalled, ready, alike, retried}, gone, flow.IsStalled, "d, e: of d; f: of f"},
		{"failed", []*part{failed, stalled}, nil, func(err error) bool { return errors.Is(err, failed.failure) }, "component g: no connection"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := verdict(&scope{parts: test.parts, doomed: test.doomed})
			if !test.is(err) || err != nil && err.Error() != test.message {
				t.Errorf("got %T %v", err, err)
			}
		})
	}
}

// The end of a truce is known. Everything else that the server refuses is retried.
func TestAContestedComponentComesBackAfterItsTruce(t *testing.T) {
	for _, test := range []struct {
		name     string
		err      error
		after    time.Duration
		retrying bool
	}{
		{"contested", flow.Within(time.Second, flow.Stalled(flow.ReasonContested, errors.New("again"))), time.Second, false},
		{"taken", flow.Stalled(flow.ReasonResourceExists, errors.New("taken")), 0, false},
		{"taken, and not watched", flow.StalledRetrying(flow.ReasonResourceExists, errors.New("taken")), 0, true},
		{"refused", flow.Stalled("Invalid", errors.New("invalid")), 0, true},
	} {
		p := partOf("a", "")
		p.applied(&appv1.AppService{}, test.err)
		if after, retrying := flow.ComesBack(verdict(&scope{parts: []*part{p}})); after != test.after || retrying != test.retrying {
			t.Errorf("%s: back after %v, retrying: %v", test.name, after, retrying)
		}
	}
}

// A component that asks for another look after a time gets it, whatever the other components are like.
func TestVerdictComesBackForTheFirst(t *testing.T) {
	soon, later, stalled := partOf("a", "Progressing"), partOf("b", "Progressing"), partOf("c", "Stalled")
	soon.lookAgain, later.lookAgain = time.Second, time.Minute
	for _, test := range []struct {
		name  string
		parts []*part
		after time.Duration
	}{
		{"no component asks for it", []*part{partOf("d", "Progressing"), stalled}, 0},
		{"the first of two", []*part{later, soon}, time.Second},
		{"another one is stalled", []*part{stalled, later}, time.Minute},
	} {
		if after, _ := flow.ComesBack(verdict(&scope{parts: test.parts})); after != test.after {
			t.Errorf("%s: after %v, not %v", test.name, after, test.after)
		}
	}
}

func TestExplainStaysShort(t *testing.T) {
	var parts []*part
	for i := range 30 {
		parts = append(parts, partOf(fmt.Sprint("c", i), "Stalled"))
	}
	if got := explain(parts); !strings.HasSuffix(got, "c4: of c4; and 25 more, see status.components") {
		t.Error(got)
	}
}

func TestSetStatus(t *testing.T) {
	kapp := &kappv1.KAPP{Spec: kappv1.KAPPSpec{Components: []kappv1.Component{{Name: "web"}, {Name: "db"}, {Name: strings.Repeat("x", 41)}}}}
	web, db, long := partOf("web", "Waiting"), partOf("db", "Ready"), partOf(strings.Repeat("x", 41), "Stalled")
	web.waitingFor = []string{"db"}
	web.message = strings.Repeat("ü", maxRowMessage+1)
	s := &scope{kapp: kapp, parts: []*part{db, long, web}}
	for _, component := range []string{"db", "old", "old", ""} {
		s.doomed = append(s.doomed, doomed{owned: owned{resource: *db.resource, component: component}, message: "going"})
	}
	setStatus(s)
	var rows []string
	for _, row := range kapp.Status.Components {
		rows = append(rows, fmt.Sprintf("%s %s %s %s %s %v", row.Name, row.State, row.APIVersion, row.Kind, row.ResourceName, row.WaitingFor))
	}
	want := `web Waiting app.example.com/v1 AppService store-web [db]
db Ready app.example.com/v1 AppService store-db []
old Deleting app.example.com/v1 AppService store-db []`
	if got := strings.Join(rows, "\n"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if status := kapp.Status; status.ComponentCount != 3 || status.ReadyComponentCount != 1 || len([]rune(status.Components[0].Message)) != maxRowMessage {
		t.Errorf("%d of %d", status.ReadyComponentCount, status.ComponentCount)
	}
}

func TestRecorded(t *testing.T) {
	object := func(name, component string, dependsOn ...string) owned {
		return owned{resource: resource{kind: componentKinds()[0], name: name}, component: component, dependsOn: dependsOn}
	}
	applied, waiting := partOf("applied", "Ready"), partOf("waiting", "Progressing")
	applied.exists = true
	applied.component.DependsOn, waiting.component.DependsOn = []string{"new"}, []string{"new"}
	s := &scope{parts: []*part{applied, waiting}, owned: []owned{
		object("store-applied", "formerly", "old"), object("store-waiting", "waiting", "old"),
		object("gone", "removed", "a"), object("gone-too", "removed", "b"),
	}}
	if got, want := fmt.Sprint(s.recorded()), "map[applied:[new] removed:[a b] waiting:[old]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
