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
	for name, test := range map[string]struct {
		learned, failing []string
		wrong, blamed    []*Observation
		excused          bool
	}{
		"it fails as undisturbed":       {[]string{failure}, []string{"connecting to victory-client:2181, attempt 12: no such host"}, []*Observation{undone}, nil, true},
		"it fails at something else":    {[]string{failure}, []string{"the quota is used up"}, []*Observation{undone}, []*Observation{undone}, false},
		"it fails at both":              {[]string{failure}, []string{"the quota is used up", failure}, []*Observation{undone}, nil, true},
		"it fails, but not undisturbed": {nil, []string{failure}, []*Observation{undone}, []*Observation{undone}, false},
		"it does not fail":              {[]string{failure}, nil, []*Observation{undone}, []*Observation{undone}, false},
		"what it did is its own":        {[]string{failure}, []string{failure}, []*Observation{undone, deleted}, []*Observation{deleted}, true},
		"retrying it is no news":        {[]string{failure}, []string{failure}, []*Observation{{Verdict: "unsettled"}}, nil, false},
		"nothing is wrong":              {[]string{failure}, []string{failure}, nil, nil, false},
	} {
		c := sailing()
		c.failing = map[string]string{}
		c.learnFailing(test.learned)
		blamed, excused := c.excuse(test.wrong, test.failing)
		if !slices.Equal(blamed, test.blamed) || (excused != "") != test.excused {
			t.Errorf("%s: blamed for %v, excused by %q", name, blamed, excused)
		}
		if test.excused && excused != "the operator keeps failing, as it does undisturbed: "+failure {
			t.Errorf("%s: the reason is %q", name, excused)
		}
	}
}

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
	got := following(repeat(9, failed)...).outlook(time.Now(), nearFuture)
	expectLines(t, got.failing, "not now")
	got = following(failed...).outlook(time.Now(), nearFuture)
	expectLines(t, got.failing)
}

// An operator may make a lock, a Lease or a Secret for its webhook when it is started.
func TestWhatTheOperatorMakesForItselfIsNotLeftBehind(t *testing.T) {
	c := sailing()
	lock := world.Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: "default", Name: "operator-lock"}
	data := world.Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: "default", Name: "victory"}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	wrong := c.leftovers(len(c.o.Steps)-1, &stage{state: world.State{lock: object, data: object}}, world.State{lock: object})
	if len(wrong) != 1 || wrong[0].Verdict != "leftovers" || wrong[0].Object != "ConfigMap default/victory" {
		t.Errorf("got %+v", wrong)
	}
}
