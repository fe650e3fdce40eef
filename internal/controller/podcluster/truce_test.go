// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
)

// No event ends a truce, because the other writer has its way.
func TestATruceEndsWhileSomethingElseIsReported(t *testing.T) {
	cluster := clusterOf(t, "{podReplicas: 1, image: a}")
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster).WithStatusSubresource(cluster).
		WithIndex(&corev1.Pod{}, clusterIndex, clusterKeys).WithIndex(&appsv1.ControllerRevision{}, clusterIndex, clusterKeys).Build()
	r := &Reconciler{Client: server, Reader: server, Now: func() time.Time { return noon }}
	whole := &flow.Reconciler[*kubegroupv1.PodCluster]{
		Kind: r.Kind(), Client: server, Reader: server, Events: events.NewFakeRecorder(1000), Clock: clocktesting.NewFakePassiveClock(noon),
	}
	// Each time, other labels are removed with it.
	others := [][]string{nil, {flow.LabelKind}, {labelRevision}, {flow.LabelKind, labelRevision}}
	for round := range 20 * len(others) {
		var revisions appsv1.ControllerRevisionList
		if err := server.List(t.Context(), &revisions); err != nil {
			t.Fatal(err)
		}
		for i := range revisions.Items {
			for _, name := range append(others[round%len(others)], flow.LabelInstance) {
				delete(revisions.Items[i].Labels, name)
			}
			if err := server.Update(t.Context(), &revisions.Items[i]); err != nil {
				t.Fatal(err)
			}
		}
		result, err := whole.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cluster)})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.List(t.Context(), &revisions); err != nil {
			t.Fatal(err)
		}
		if revisions.Items[0].Labels[flow.LabelInstance] == "" {
			if result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
				t.Errorf("the next pass is after %v", result.RequeueAfter)
			}
			return
		}
	}
	t.Error("there is no truce")
}

func TestTheFirstTruceToEndCounts(t *testing.T) {
	contested := func(after time.Duration) error {
		return flow.Within(after, flow.Stalled(flow.ReasonContested, errors.New("contested")))
	}
	exists := flow.Stalled(flow.ReasonResourceExists, errors.New("taken"))
	invalid := flow.Stalled(ReasonInvalidSpec, errors.New("invalid"))
	for _, test := range []struct {
		name     string
		outcomes []outcome
		reason   string
	}{
		{"a longer one", []outcome{{err: contested(time.Second), taken: true}, {err: contested(time.Minute), taken: true}}, flow.ReasonContested},
		{"a shorter one", []outcome{{err: contested(time.Minute), taken: true}, {err: contested(time.Second), taken: true}}, flow.ReasonContested},
		{"a name that is taken", []outcome{{err: contested(time.Second), taken: true}, {err: exists, taken: true}}, flow.ReasonResourceExists},
		{"a name that will be free", []outcome{{err: contested(time.Second), taken: true}, {err: flow.Waiting(ReasonNameNotFree, ""), taken: true}}, flow.ReasonContested},
		{"a pod that is invalid", []outcome{{err: contested(time.Second), taken: true}, {err: invalid}}, ReasonInvalidSpec},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &scope{pass: &flow.Pass{}}
			for ordinal := range test.outcomes {
				s.plan.actions = append(s.plan.actions, action{verb: label, ordinal: ordinal})
			}
			err := (&Reconciler{}).each(label, func(_ context.Context, _ *scope, a action) outcome { return test.outcomes[a.ordinal] })(t.Context(), s)
			if after, _ := flow.ComesBack(err); after != time.Second || flow.Reason(err) != test.reason {
				t.Errorf("the outcome is %s %v, after %v", flow.Reason(err), err, after)
			}
			if !s.hindered {
				t.Error("an update could end although a pod is not known")
			}
		})
	}
	hidden := flow.StalledRetrying(flow.ReasonLabelChanged, errors.New("hidden"))
	if after, retrying := flow.ComesBack(soonest(contested(time.Minute), hidden)); after != time.Minute || !retrying {
		t.Errorf("the next pass is after %v, retrying: %v", after, retrying)
	}
	s := &scope{}
	s.contest(contested(time.Minute))
	s.contest(contested(time.Second))
	if after, _ := flow.ComesBack(s.contested); after != time.Second {
		t.Errorf("the next pass is after %v", after)
	}
}

// Another writer removes a label of the template. If that label is taken out of the template, the pod has to follow.
func TestAContestedLabelDoesNotKeepAPodFromItsUpdate(t *testing.T) {
	for _, test := range []struct {
		name, hash string
		contested  bool
		want       string
	}{
		{"it is restored", "v1", false, "label 1"},
		{"it is contested", "v1", true, "delete 1 (another revision)"},
		{"it is contested, and the pod is updated", "v2b", true, "label 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			old, update := newRevision("v1"), newRevision("v2b")
			members := []*member{memberOf("web", newPod(t, "web", 0, "v2b", "")), memberOf("web", newPod(t, "web", 1, test.hash, ""))}
			members[1].drift = &podDrift{labels: map[string]string{"tier": "ring"}, metadata: []string{"label"}}
			members[1].metadataContested = test.contested
			w := world{
				settings: settings{name: "web", replicas: 2, maxUnavailable: 1, deadline: 1 << 40}, truce: noon.Add(time.Second),
				members: members, revisions: map[string]*revision{"v1": old, "v2b": update}, update: update, current: old, now: noon,
			}
			got := newPlan(w)
			if text := describePlan(got); text != test.want || !got.wake.Equal(w.truce) {
				t.Errorf("the plan is %q, and the next look at %v", text, got.wake)
			}
		})
	}
}

// While a correction waits, an update can end. While anything else is unknown, it cannot.
func TestAContestedLabelDoesNotHoldUpTheEndOfAnUpdate(t *testing.T) {
	cluster := clusterOf(t, "{podReplicas: 1}")
	pod := newPod(t, cluster.Name, 0, "v1", "")
	pod.Namespace = cluster.Namespace
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster, pod).WithStatusSubresource(cluster).Build()
	r := &Reconciler{Client: server, Reader: server}
	pass := newPasses(t, r, cluster)
	truce := false
	for range 30 {
		live := &corev1.Pod{}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(pod), live); err != nil {
			t.Fatal(err)
		}
		delete(live.Labels, "tier")
		if err := server.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		m := memberOf(cluster.Name, live)
		m.drift = &podDrift{labels: map[string]string{"tier": "ring"}, metadata: []string{"label"}}
		pass(func(ctx context.Context, s *scope) {
			s.world.now, s.world.members = noon, []*member{m}
			markContested(s)
			truce = m.metadataContested
			if !truce {
				s.plan.actions = []action{{verb: label, member: m}}
				if err := r.carryOut(ctx, s); err != nil || s.postponed != nil {
					t.Fatalf("the outcome is %v, and %v is postponed", err, s.postponed)
				}
				return
			}
			if !s.world.truce.Equal(noon.Add(time.Second)) {
				t.Errorf("the truce ends at %v", s.world.truce)
			}
			s.plan.actions = []action{{verb: label, member: m}}
			if err := r.carryOut(ctx, s); err != nil || flow.Reason(s.postponed) != flow.ReasonContested {
				t.Errorf("the outcome is %v, and %v is postponed", err, s.postponed)
			}
			s.postponed = nil
			s.plan.actions = append(s.plan.actions, action{verb: create, revision: newRevision("v1")})
			if err := r.carryOut(ctx, s); flow.Reason(err) != flow.ReasonContested || s.postponed != nil {
				t.Errorf("the outcome is %v, and %v is postponed", err, s.postponed)
			}
		})
		if truce {
			return
		}
	}
	t.Error("there is no truce")
}

// Another writer changes the same label each time, and each time another one with it.
func TestAContestAboutOneOfSeveralFields(t *testing.T) {
	cluster := clusterOf(t, "{podReplicas: 1}")
	pod := newPod(t, cluster.Name, 0, "v1", "")
	pod.Namespace, pod.OwnerReferences = cluster.Namespace, []metav1.OwnerReference{controllerRef(cluster)}
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster, pod).WithStatusSubresource(cluster).Build()
	r := &Reconciler{Client: server, Reader: server}
	pass := newPasses(t, r, cluster)
	others := []string{"a", "b", "c", "d", "e"}
	wanted := belonging{labels: map[string]string{"same": "ours"}, owner: controllerRef(cluster)}
	for _, other := range others {
		wanted.labels[other] = "ours"
	}
	for round := range 20 * len(others) {
		live := &corev1.Pod{}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(pod), live); err != nil {
			t.Fatal(err)
		}
		maps.Copy(live.Labels, wanted.labels)
		live.Labels["same"], live.Labels[others[round%len(others)]] = "theirs", "theirs"
		if err := server.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		m := memberOf(cluster.Name, live)
		m.drift = driftOf(records{}, live, wanted, nil)
		var done outcome
		pass(func(ctx context.Context, s *scope) { done = r.labelPod(ctx, s, action{verb: label, member: m}) })
		if done.err != nil {
			const want = "labels.a was changed, metadata.labels.same was changed;"
			if flow.Reason(done.err) != flow.ReasonContested || !strings.Contains(done.err.Error(), want) {
				t.Errorf("the outcome is %v", done.err)
			}
			return
		}
	}
	t.Error("there is no truce")
}
