// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	for range 30 {
		var revisions appsv1.ControllerRevisionList
		if err := server.List(t.Context(), &revisions); err != nil {
			t.Fatal(err)
		}
		for i := range revisions.Items {
			delete(revisions.Items[i].Labels, flow.LabelInstance)
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
		})
	}
	s := &scope{}
	s.contest(contested(time.Minute))
	s.contest(contested(time.Second))
	if after, _ := flow.ComesBack(s.contested); after != time.Second {
		t.Errorf("the next pass is after %v", after)
	}
}
