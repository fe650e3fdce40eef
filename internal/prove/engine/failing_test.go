// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
)

func TestWhatIsLeftUndoneWhileStuck(t *testing.T) {
	undone, deleted := missing("Service"), &Observation{Verdict: "counts", Object: "PersistentVolumeClaim default/data"}
	const failure = "connecting to victory-client:2181, attempt 7: no such host"
	const asUndisturbed = "the operator keeps failing, as it does undisturbed: " + failure
	for name, test := range map[string]struct {
		learned       []string
		over          rested
		wrong, blamed []*Observation
		excused       string
	}{
		"it fails as undisturbed":       {[]string{failure}, failing("connecting to victory-client:2181, attempt 12: no such host"), []*Observation{undone}, nil, asUndisturbed},
		"it fails at something else":    {[]string{failure}, failing("the quota is used up"), []*Observation{undone}, []*Observation{undone}, ""},
		"it fails at both":              {[]string{failure}, failing("the quota is used up", failure), []*Observation{undone}, nil, asUndisturbed},
		"it fails, but not undisturbed": {nil, failing(failure), []*Observation{undone}, []*Observation{undone}, ""},
		"it does not fail":              {[]string{failure}, rested{}, []*Observation{undone}, []*Observation{undone}, ""},
		"what it did is its own":        {[]string{failure}, failing(failure), []*Observation{undone, deleted}, []*Observation{deleted}, asUndisturbed},
		"retrying it is no news":        {[]string{failure}, failing(failure), []*Observation{{Verdict: "unsettled"}}, nil, ""},
		"nothing is wrong":              {[]string{failure}, failing(failure), nil, nil, ""},
		"it tries again too late":       {nil, rested{backsOff: true}, []*Observation{undone}, nil, tooLate},
		"what it did until then":        {nil, rested{backsOff: true}, []*Observation{undone, deleted}, []*Observation{deleted}, tooLate},
		"too late, and all is well":     {nil, rested{backsOff: true}, nil, nil, ""},
	} {
		c := sailing()
		c.failing = map[string]string{}
		c.learnFailing(test.learned)
		blamed, excused := c.excuse(test.wrong, test.over, nil)
		if !slices.Equal(blamed, test.blamed) || excused != test.excused {
			t.Errorf("%s: blamed for %v, excused by %q, want %q", name, blamed, excused, test.excused)
		}
	}
}

// TestTimersThatAreTooLate is about an operator that looks again after a minute, about one that always does, and about another
// controller than the one that writes what is missing.
func TestTimersThatAreTooLate(t *testing.T) {
	undone, deleted := missing("Service"), &Observation{Verdict: "counts", Object: "PersistentVolumeClaim default/data"}
	kind, name, _ := strings.Cut(undone.Object, " ")
	namespace, name, _ := strings.Cut(name, "/")
	timer := func(controller string, after time.Duration) map[string]time.Duration {
		return map[string]time.Duration{controller: after}
	}
	const unmarked = "unmarked"
	for about, test := range map[string]struct {
		undisturbed, now map[string]time.Duration
		writer           string // of the Service; empty if nothing writes it undisturbed
		excused          bool
	}{
		"only disturbed":                        {nil, timer("frigate", time.Minute), "", true},
		"its writer, only disturbed":            {nil, timer("frigate", time.Minute), "frigate", true},
		"another, only disturbed":               {nil, timer("frigate", time.Minute), "crew", false},
		"always":                                {timer("frigate", time.Minute), timer("frigate", time.Minute), "", false},
		"undisturbed it was shorter":            {timer("frigate", 28*time.Second), timer("frigate", 40*time.Second), "", false},
		"undisturbed it was longer":             {timer("frigate", 3*time.Minute), timer("frigate", time.Minute), "", false},
		"undisturbed it was much longer":        {timer("frigate", 10*time.Minute), timer("frigate", time.Minute), "", true},
		"undisturbed it was hours":              {timer("frigate", 0), timer("frigate", 10*time.Minute), "", true},
		"one of two always":                     {timer("frigate", time.Minute), map[string]time.Duration{"crew": time.Minute, "frigate": time.Minute}, "", true},
		"within a step":                         {nil, timer("frigate", 20*time.Second), "", false},
		"never":                                 {nil, nil, "", false},
		"never, and the writer is unknown":      {nil, nil, unmarked, false},
		"only disturbed, the writer is unknown": {nil, timer("frigate", time.Minute), unmarked, true},
		"always, and the writer is unknown":     {timer("frigate", time.Minute), timer("frigate", time.Minute), unmarked, false},
		"only undisturbed, at all":              {timer("frigate", time.Minute), nil, "", false},
	} {
		c := sailing()
		c.o.Settling = DefaultSettling
		c.reference[0].rested.timers = test.undisturbed
		if test.writer != "" {
			c.reference[0].writes = []write{{Moment: Moment{Verb: "create", Namespace: namespace, Name: name}, object: kind, controller: strings.TrimPrefix(test.writer, unmarked)}}
		}
		blamed, excused := c.excuse([]*Observation{undone, deleted}, rested{timers: test.now}, nil)
		if (excused == timerTooLate) != test.excused || slices.Contains(blamed, undone) == test.excused || !slices.Contains(blamed, deleted) {
			t.Errorf("%s: blamed for %v, excused by %q", about, blamed, excused)
		}
	}
}

// TestWhatFollowsFromALateTimer is about a controller that makes something of what another one has not made yet.
func TestWhatFollowsFromALateTimer(t *testing.T) {
	c := sailing()
	c.o.Settling = DefaultSettling
	c.reference[0].writes = []write{
		{Moment: Moment{Verb: "create", Namespace: "default", Name: "victory"}, object: "Crew", controller: "frigate"},
		{Moment: Moment{Verb: "create", Namespace: "default", Name: "victory"}, object: "Deployment", controller: "crew"},
	}
	late := rested{timers: map[string]time.Duration{"frigate": time.Minute}}
	if blamed, excused := c.excuse([]*Observation{missing("Crew"), missing("Deployment")}, late, nil); len(blamed) > 0 || excused != timerTooLate {
		t.Errorf("blamed for %v, excused by %q", blamed, excused)
	}
	if blamed, excused := c.excuse([]*Observation{missing("Deployment")}, late, nil); len(blamed) != 1 || excused != "" {
		t.Errorf("blamed for %v, excused by %q", blamed, excused)
	}
}

// TestControllersThatAlwaysFail is about an operator with two controllers, one of which fails undisturbed as well.
func TestControllersThatAlwaysFail(t *testing.T) {
	const failure, news = "connecting to victory-client:2181: no such host", "the quota is used up"
	crew, deployment := missing("Crew"), missing("Deployment")
	retries := &Observation{Verdict: "unsettled"}
	for about, test := range map[string]struct {
		failers       map[string][]string
		wrong, blamed []*Observation
	}{
		"the writer":                     {map[string][]string{failure: {"frigate"}}, []*Observation{crew}, nil},
		"another one":                    {map[string][]string{failure: {"frigate"}}, []*Observation{deployment}, []*Observation{deployment}},
		"one of two":                     {map[string][]string{failure: {"frigate", "crew"}}, []*Observation{deployment}, nil},
		"what follows":                   {map[string][]string{failure: {"frigate"}}, []*Observation{crew, deployment}, nil},
		"it is not known who":            {nil, []*Observation{deployment}, nil},
		"it is unmarked":                 {map[string][]string{failure: {""}}, []*Observation{deployment}, nil},
		"it is not known who writes":     {map[string][]string{failure: {"frigate"}}, []*Observation{missing("Pod")}, nil},
		"the writer, at something else":  {map[string][]string{failure: {"frigate"}, news: {"crew"}}, []*Observation{deployment}, []*Observation{deployment}},
		"retrying it is no news":         {map[string][]string{failure: {"frigate"}}, []*Observation{retries}, nil},
		"retrying it is, and another is": {map[string][]string{failure: {"frigate"}}, []*Observation{retries, deployment}, []*Observation{deployment}},
	} {
		c := sailing()
		c.failing = map[string]string{}
		c.learnFailing([]string{failure})
		c.reference[0].writes = []write{
			{Moment: Moment{Verb: "create", Namespace: "default", Name: "victory"}, object: "Crew", controller: "frigate"},
			{Moment: Moment{Verb: "create", Namespace: "default", Name: "victory"}, object: "Deployment", controller: "crew"},
		}
		over := failing(failure)
		if over.failers = test.failers; test.failers[news] != nil {
			over.failing = append(over.failing, news)
		}
		if blamed, excused := c.excuse(test.wrong, over, nil); !slices.Equal(blamed, test.blamed) || (excused != "") != (len(blamed) == 0 && test.wrong[0] != retries) {
			t.Errorf("%s: blamed for %v, excused by %q", about, blamed, excused)
		}
	}
}

// TestWhatComesBeforeTheFailure has an operator that fails in each reconcile, after it has resized a claim.
func TestWhatComesBeforeTheFailure(t *testing.T) {
	const failure = "connecting to victory-client:2181, attempt 7: no such host"
	claim := Moment{Verb: "update", Resource: "persistentvolumeclaims", Namespace: "default", Name: "data"}
	written := write{Moment: claim, object: "PersistentVolumeClaim", fields: []string{"metadata.annotations[sea.example.com/size]", "spec.resources.requests.storage"}, failure: plain(failure)}
	service := write{Moment: Moment{Verb: "create", Resource: "services", Namespace: "default", Name: "victory"}, object: "Service", failure: plain(failure)}
	wrong := func(object string, step int, fields ...string) *Observation {
		return &Observation{Verdict: "end-state", Object: object, Step: step, Fields: fields}
	}
	const data = "PersistentVolumeClaim default/data"
	for name, test := range map[string]struct {
		wrong  *Observation
		blamed bool
	}{
		"it is written before":          {wrong(data, 1, "spec.resources.requests.storage"), true},
		"a part of what is written":     {wrong(data, 1, "metadata.annotations.sea.example.com/size"), true},
		"in an earlier step":            {wrong(data, 2, "spec.resources.requests.storage"), true},
		"in a later step":               {wrong(data, 0, "spec.resources.requests.storage"), false},
		"another field":                 {wrong(data, 1, "spec.resources.requests.storages"), false},
		"another object":                {wrong("PersistentVolumeClaim default/logs", 1, "spec.resources.requests.storage"), false},
		"an object is missing":          {wrong("Service default/victory", 1, ""), true},
		"an object that it only writes": {wrong(data, 1, ""), false},
	} {
		c := sailing()
		c.failing = map[string]string{}
		c.learnFailing([]string{failure})
		c.reference[1].writes = append(c.reference[1].writes, written, service)
		blamed, excused := c.excuse([]*Observation{test.wrong}, failing("connecting to victory-client:2181, attempt 12: no such host"), nil)
		if (len(blamed) == 1) != test.blamed || (excused == "") != test.blamed {
			t.Errorf("%s: blamed for %v, excused by %q", name, blamed, excused)
		}
	}
}

// TestWhatIsPassedBy has an operator that deletes a StatefulSet, resizes its claim and creates it again, in one
// reconcile. A later one fails.
func TestWhatIsPassedBy(t *testing.T) {
	const failure = "connecting to victory-client:2181: no such host"
	moment := func(verb, resource string) Moment {
		return Moment{Verb: verb, Resource: resource, Namespace: "default", Name: "data", Nth: 1}
	}
	remove, resize, create := moment("delete", "statefulsets"), moment("update", "persistentvolumeclaims"), moment("create", "statefulsets")
	other := moment("create", "services")
	for name, test := range map[string]struct {
		done   []Moment
		blamed bool
	}{
		"it goes on without it":         {[]Moment{remove, create}, true},
		"it does not go on":             {[]Moment{remove}, false},
		"it does it":                    {[]Moment{remove, resize, create}, false},
		"it does what comes separately": {[]Moment{remove, other}, false},
	} {
		c := sailing()
		c.failing = map[string]string{}
		c.learnFailing([]string{failure})
		c.reference[1].writes = []write{
			{Moment: remove, object: "StatefulSet", reconcile: 7},
			{Moment: resize, object: "PersistentVolumeClaim", fields: []string{"spec.resources.requests.storage"}, reconcile: 7},
			{Moment: create, object: "StatefulSet", reconcile: 7},
			{Moment: other, object: "Service", reconcile: 8},
		}
		var moments []seenMoment
		for _, one := range test.done {
			moments = append(moments, seenMoment{Moment: one})
		}
		wrong := &Observation{Verdict: "end-state", Object: "PersistentVolumeClaim default/data", Step: 1, Fields: []string{"spec.resources.requests.storage"}}
		blamed, _ := c.excuse([]*Observation{wrong}, failing(failure), moments)
		if (len(blamed) == 1) != test.blamed {
			t.Errorf("%s: blamed for %v", name, blamed)
		}
	}
}

func failing(errors ...string) rested { return rested{stuck: true, failing: errors} }

func TestErrorsAreKeptOnceAndShort(t *testing.T) {
	c := sailing()
	c.failing = map[string]string{}
	c.learnFailing([]string{"pod 3e1c4a52-1111-2222-3333-444455556666 is not there, 1 attempt\nstack", "pod 9f1c4a52-1111-2222-3333-444455556677 is not there, 2 attempt"})
	expectLines(t, c.failures(), "pod 3e1c4a52-1111-2222-3333-444455556666 is not there, 1 attempt")
	if got := shortened(strings.Repeat("ü", longestReason)); len(got) > longestReason+len("…") || !strings.HasSuffix(got, "ü…") {
		t.Errorf("it is shortened to %q", got)
	}
}

func TestErrorsOfAnOperatorThatIsStuck(t *testing.T) {
	failed := reconciled(lens.Reconcile{ID: 1, Error: "not now"})
	got := following(repeat(9, failed)...).outlook(time.Now(), nearFuture, nil)
	expectLines(t, got.failing, "not now")
	expectLines(t, got.failers["not now"], failed[0].Reconcile.Controller)
	got = following(failed...).outlook(time.Now(), nearFuture, nil)
	expectLines(t, got.failing)
}

// An operator may make a lock, a Lease or a Secret for its webhook when it is started.
func TestWhatTheOperatorMakesForItselfIsNotLeftBehind(t *testing.T) {
	c := sailing()
	lock := world.Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: "default", Name: "operator-lock"}
	data := world.Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: "default", Name: "victory"}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	wrong := c.leftovers(len(c.o.Steps)-1, world.State{lock: object, data: object}, world.State{lock: object})
	if len(wrong) != 1 || wrong[0].Verdict != "leftovers" || wrong[0].Object != "ConfigMap default/victory" {
		t.Errorf("got %+v", wrong)
	}
}
