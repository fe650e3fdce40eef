// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/prove/world"
)

func TestChangesThatAreNotSeen(t *testing.T) {
	key := world.Key{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "victory"}
	conditions := func(kind string, observed any) map[string]any {
		return map[string]any{"observedGeneration": int64(2), "conditions": []any{map[string]any{"type": kind, "status": "True", "observedGeneration": observed}}}
	}
	for about, test := range map[string]struct {
		status map[string]any
		want   string // the field
	}{
		"seen":                      {map[string]any{"observedGeneration": int64(2)}, ""},
		"not seen":                  {map[string]any{"observedGeneration": int64(1)}, "status.observedGeneration"},
		"it says nothing":           {map[string]any{}, ""},
		"a text is no statement":    {map[string]any{"observedGeneration": "1"}, ""},
		"seen by its condition":     {conditions("Ready", int64(2)), ""},
		"not seen by its condition": {conditions("Ready", int64(1)), "status.conditions[Ready].observedGeneration"},
		"a condition says nothing":  {conditions("Ready", nil), ""},
		"a condition about a part":  {conditions("Migrated", int64(1)), ""},
	} {
		live := frigate()
		live.SetGeneration(2)
		live.Object["status"] = test.status
		var got []string
		for _, o := range sailing().unseenChanges(1, &stage{state: world.State{key: live}}) {
			got = append(got, o.Fields...)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %q, want %q", about, got, test.want)
		}
	}
}

func TestStrangersThatAreDeleted(t *testing.T) {
	c := sailing()
	other := &unstructured.Unstructured{}
	other.SetAPIVersion("networking.k8s.io/v1")
	other.SetKind("NetworkPolicy")
	other.SetNamespace("default")
	other.SetName("victory")
	c.o.Others = []*unstructured.Unstructured{other}
	policy := Moment{Verb: "delete", Group: "networking.k8s.io", Resource: "networkpolicies", Namespace: "default", Name: "victory"}
	change, elsewhere, own := policy, policy, policy
	change.Verb, elsewhere.Namespace, own.Group, own.Resource = "patch", "other", "apps", "deployments"
	wrong := c.strangers(0, &stage{writes: []write{{Moment: change}, {Moment: elsewhere}, {Moment: own}, {Moment: policy}}})
	if len(wrong) != 1 || wrong[0].Verdict != "foreign" || wrong[0].Object != "NetworkPolicy default/victory" {
		t.Errorf("got %+v", wrong)
	}
	all := policy
	all.Verb, all.Name = "deletecollection", ""
	key := world.Key{Group: "networking.k8s.io", Resource: "networkpolicies", Kind: "NetworkPolicy", Namespace: "default", Name: "victory"}
	for about, test := range map[string]struct {
		left    world.State
		deleted int
		step    int
		want    int
	}{
		"a collection with it":                 {nil, 1, 0, 1},
		"a collection of others":               {world.State{key: other}, 0, 0, 0},
		"it is not there yet, or was before":   {nil, 0, 0, 0},
		"the scenario deletes it in this step": {nil, 1, 2, 0},
	} {
		counts := map[string]bounds{key.String(): {deleted: [2]int{test.deleted, test.deleted}}}
		if wrong := c.strangers(test.step, &stage{state: test.left, counts: counts, writes: []write{{Moment: all}}}); len(wrong) != test.want {
			t.Errorf("%s: got %+v", about, wrong)
		}
	}
}

// A right that the operator lacks undisturbed is one finding, and not one more for each family.
func TestRightsThatAreMissingAnyway(t *testing.T) {
	c := sailing()
	c.denied = map[string]bool{}
	refused := func(verb string) *lens.Event {
		return request(lens.Request{Verb: verb, Resource: deployments, Status: 403, Message: `deployments.apps "a" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "deployments"`})
	}
	r := &run{campaign: c, activity: following(refused("list"))}
	wrong := r.healthOf(0, rested{})
	if len(wrong) != 1 || wrong[0].Verdict != "refused-rights" {
		t.Fatalf("got %+v", wrong)
	}
	c.learnHealth(wrong)
	r.activity = following(refused("list"), refused("delete"))
	if wrong = r.healthOf(0, rested{}); len(wrong) != 1 || wrong[0].Title != "The operator's role does not allow what it does: delete deployments" {
		t.Errorf("got %+v", wrong)
	}
}

// An operator that reconciles without a pause undisturbed is one finding, and does not end disturbed runs.
func TestSpinningThatIsKnown(t *testing.T) {
	for about, test := range map[string]struct {
		once bool
		want int
	}{"both undisturbed runs show it": {false, 0}, "one does": {true, 1}} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &run{campaign: sailing(), activity: newActivity()}
				(&polling{run: r, period: time.Millisecond}).start(t)
				time.Sleep(time.Second)
				synctest.Wait()
				wrong := r.healthOf(0, rested{})
				if len(wrong) != 1 || wrong[0].Verdict != "loop" {
					t.Fatalf("got %+v", wrong)
				}
				wrong[0].once = test.once
				r.campaign.learnHealth(wrong)
				for _, over := range []rested{{}, {busy: true}} {
					if got := r.healthOf(0, over); len(got) != test.want {
						t.Errorf("got %+v", got)
					}
				}
				if got := r.healthOf(0, rested{busy: true, writes: 1}); len(got) != 1 || got[0].Title == withoutPause {
					t.Errorf("got %+v for writes without end", got)
				}
			})
		})
	}
}

func TestWhatTheOperatorMakesForItselfIsNotCounted(t *testing.T) {
	c := sailing()
	c.own = map[string]bool{}
	lock := world.Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: "default", Name: "operator-lock"}
	got := map[string]bounds{lock.String(): {created: [2]int{1, 1}}}
	if wrong := c.countDifferences(0, nil, got); len(wrong) != 1 {
		t.Fatalf("before it is known: %+v", wrong)
	}
	c.learnOwn(world.State{lock: &unstructured.Unstructured{Object: map[string]any{}}})
	if wrong := c.countDifferences(0, nil, got); len(wrong) != 0 {
		t.Errorf("got %+v", wrong)
	}
}

// TestUndisturbedRunsFailOnce is about two runs that fail for the same reason.
func TestUndisturbedRunsFailOnce(t *testing.T) {
	ended, full := &StepError{Step: "create", Err: errors.New("no such kind")}, errors.New("the disk is full")
	for about, test := range map[string]struct {
		errors []error
		want   string
	}{
		"none":      {[]error{nil, nil}, ""},
		"one":       {[]error{nil, ended}, ended.Error()},
		"the same":  {[]error{ended, &StepError{Step: "create", Err: errors.New("no such kind")}}, ended.Error()},
		"different": {[]error{ended, full}, ended.Error() + "\n" + full.Error()},
	} {
		err := distinct(test.errors)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want || test.want != "" && !errors.As(err, new(*StepError)) {
			t.Errorf("%s: got %q, want %q", about, got, test.want)
		}
	}
}

// TestWhatOneUndisturbedRunShows is flaky, as a finding that does not happen again in replays is.
func TestWhatOneUndisturbedRunShows(t *testing.T) {
	seen := func(titles ...string) (all []*Observation) {
		for _, title := range titles {
			all = append(all, &Observation{Verdict: strings.ToLower(strings.Fields(title)[0]), Title: title})
		}
		return all
	}
	g := gathered()
	g.campaign.o.Operator.Project = &project.Project{Name: "ship"}
	g.campaign.checkpoints = []string{"0"}
	g.addUndisturbed(append(compared(seen("Panic twice", "Exit first", "Loop once", "Status first"), seen("Panic twice", "Deletion second")), seen("Status first")...))
	r := g.result(built{}, false).Report
	var got []string
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%s: %d of %d, flaky: %v", f.Title, f.Again, f.Replays, f.Flaky))
	}
	slices.Sort(got)
	expectLines(t, got, "Deletion second: 0 of 1, flaky: true", "Exit first: 0 of 1, flaky: true",
		"Loop once: 0 of 1, flaky: false", // what is compared with a run that does not end?
		"Panic twice: 1 of 1, flaky: false",
		"Status first: 1 of 1, flaky: false") // a restart showed it as well
	if family := g.families["undisturbed"]; family.Flaky != 2 || family.Verdicts["panic"] != 1 || family.Verdicts["exit"] != 0 {
		t.Errorf("the family is %+v", family)
	}
	only := gathered(crashAt("a"))
	only.campaign.o.FailFast = true
	if only.addUndisturbed(compared(seen("Exit first"), nil)); only.isEnough() {
		t.Error("the campaign ends with a finding that was not confirmed")
	}
}

// A campaign does without the way back if the operator cannot cope with it, but not without what comes before.
func TestStepsThatAreTooMuch(t *testing.T) {
	well, busy, failing, slow := rested{}, rested{busy: true}, rested{stuck: true}, rested{backsOff: true}
	for about, test := range map[string]struct {
		over []rested
		want int
	}{
		"all is well":                     {[]rested{well, well, well, well}, -1},
		"it does not come to rest":        {[]rested{well, well, busy}, 2},
		"it keeps failing":                {[]rested{well, well, failing, failing}, 2},
		"it backs off":                    {[]rested{well, well, slow, well}, 2},
		"it has been failing before":      {[]rested{well, failing, failing, well}, -1},
		"it does not come to rest before": {[]rested{well, busy}, -1},
		"it fails later":                  {[]rested{well, well, well, failing}, -1},
	} {
		c := &campaign{o: Options{Steps: []Step{{}, {}, {Optional: true}, {}}}}
		for _, over := range test.over {
			c.reference = append(c.reference, &stage{rested: over})
		}
		if got := c.tooMuch(); got != test.want {
			t.Errorf("%s: got %d, want %d", about, got, test.want)
		}
	}
}
