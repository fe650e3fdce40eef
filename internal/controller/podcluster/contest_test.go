// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
)

// Another controller changes a field of each new pod that cannot be set back.
func TestPodsAreNotReplacedWithoutEnd(t *testing.T) {
	for _, minReady := range []time.Duration{0, 2 * time.Minute} {
		t.Run(minReady.String(), func(t *testing.T) {
			cluster := clusterOf(t, "{podReplicas: 1}")
			server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cluster).WithStatusSubresource(cluster).Build()
			r := &Reconciler{Client: server, Reader: server, Now: time.Now}
			clock := clocktesting.NewFakePassiveClock(noon)
			var a action
			var done outcome
			var marked *member
			kind := r.Kind()
			kind.Reconcile = func(ctx context.Context, pass *flow.Pass, cluster *kubegroupv1.PodCluster) error {
				done = r.deletePod(ctx, &scope{cluster: cluster, pass: pass, world: world{settings: settings{minReady: minReady}}}, a)
				if marked != nil {
					markContested(&scope{cluster: cluster, pass: pass, world: world{members: []*member{marked}}})
				}
				return nil
			}
			whole := &flow.Reconciler[*kubegroupv1.PodCluster]{Kind: kind, Client: server, Reader: server, Events: events.NewFakeRecorder(100), Clock: clock}
			replace := func(a0 action) (gone bool) {
				a = a0
				if _, err := whole.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cluster)}); err != nil {
					t.Fatal(err)
				}
				return apierrors.IsNotFound(server.Get(t.Context(), client.ObjectKeyFromObject(a.member.pod), &corev1.Pod{}))
			}
			drifted := func(round int) action {
				pod := newPod(t, cluster.Name, 0, "v1", "")
				pod.Namespace, pod.UID = cluster.Namespace, types.UID(strconv.Itoa(round))
				if err := server.Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
				changed := []string{"spec.tolerations was changed by rival"}
				m := memberOf(cluster.Name, pod)
				m.drift = &podDrift{lasting: changed, spec: changed}
				return action{verb: remove, member: m, drifted: true}
			}

			const enough = 30
			for round := range enough {
				// The old pod takes a while to stop, and the new one to be available and old enough.
				clock.SetTime(clock.Now().Add(40*time.Second + minReady))
				next := drifted(round)
				if replace(next) {
					continue
				}
				if flow.Reason(done.err) != flow.ReasonContested || !done.taken {
					t.Fatalf("the outcome is %+v", done)
				}
				if after, _ := flow.ComesBack(done.err); after <= 0 {
					t.Error("it is not tried again")
				}
				if marked = next.member; replace(next) || !marked.specContested {
					t.Error("the planner does not know that it is contested")
				}
				// A pod that has to go for another reason does not wait.
				next.drifted = false
				if !replace(next) {
					t.Errorf("the outcome is %+v", done)
				}
				return
			}
			t.Errorf("%d pods were replaced", enough)
		})
	}
}
