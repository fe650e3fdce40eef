// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/workload"
)

// ReasonInvalidSpec means that the spec is one that today's schema would refuse.
const ReasonInvalidSpec = workload.ReasonInvalidSpec

// Reconciler reconciles PodClusters.
type Reconciler struct {
	// Client reads from the cache.
	Client client.Client
	// Reader reads from the server.
	Reader client.Reader
	Now    func() time.Time

	// vanished are revisions, and vanishedPods are pods.
	vanished, vanishedPods vanished
}

// Kind describes PodClusters to the flow.
func (r *Reconciler) Kind() flow.Kind[*kubegroupv1.PodCluster] {
	return flow.Kind[*kubegroupv1.PodCluster]{
		Name: "PodCluster",
		View: func(cluster *kubegroupv1.PodCluster) flow.View {
			return flow.View{
				Suspended: cluster.Spec.Suspend, ObservedGeneration: &cluster.Status.ObservedGeneration, Conditions: &cluster.Status.Conditions,
			}
		},
		Reconcile: r.reconcile,
		// Which revision was the current one before an update, and how many names of revisions were taken.
		StatusIsMemory: true,
	}
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, o flow.Options) error {
	r := &Reconciler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Now: time.Now}
	controller, reconciler, err := flow.Controller(mgr, r.Kind(), &kubegroupv1.PodCluster{}, o)
	if err != nil {
		return err
	}
	for _, object := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), object, clusterIndex, clusterKeys); err != nil {
			return fmt.Errorf("indexing %T: %w", object, err)
		}
	}
	return controller.
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(clustersOf), builder.WithPredicates(r.vanishedPods.notice(), whenPodMatters())).
		Owns(&appsv1.ControllerRevision{}, builder.WithPredicates(r.vanished.notice())).
		Complete(reconciler)
}

// scope holds the facts about a PodCluster during a reconcile.
type scope struct {
	cluster *kubegroupv1.PodCluster
	pass    *flow.Pass
	// adoptable is whether the server has confirmed that the PodCluster may adopt; set by mayAdopt, under adopting.
	adoptable bool
	adopting  sync.Mutex

	world world // set by readSpec, findPods, findSurplus and findRevisions
	plan  plan  // set by makePlan
	// contested is the outcome if another writer, or admission, reverts each correction of an object; set by findPods
	// and findRevisions.
	contested error
	// postponed is the outcome if only corrections of pods have to wait; set by carryOut.
	postponed error
	// hindered means that an action failed for another reason, or for a pod that is not known; set by carryOut.
	hindered bool
}

// contest records an outcome, if there is one, on which nothing else depends.
func (s *scope) contest(err error) { s.contested = soonest(s.contested, err) }

// soonest returns the first outcome that there is. It comes back as soon as any of them would: no event ends a truce with
// another writer, which has its way.
func soonest(outcomes ...error) error {
	first := cmp.Or(outcomes...)
	for _, one := range outcomes {
		first = flow.AsEarlyAs(one, first)
	}
	return first
}

func (r *Reconciler) reconcile(ctx context.Context, pass *flow.Pass, cluster *kubegroupv1.PodCluster) error {
	s := &scope{cluster: cluster, pass: pass}
	s.world.now = r.Now()
	err := flow.Run(ctx, s,
		r.readSpec,
		r.findPods,
		r.findSurplus,
		r.findRevisions,
		r.findDrift,
		r.makePlan,
		r.carryOut,
		r.concludeUpdate,
		r.pruneRevisions,
	)
	setStatus(s)
	if err == nil {
		err = soonest(s.postponed, verdict(&s.world))
	}
	err = soonest(err, s.contested)
	if err == nil {
		pass.Remark("%s", left(&s.world))
	}
	if s.plan.wake.IsZero() {
		return err
	}
	return flow.Within(max(s.plan.wake.Sub(r.Now()), time.Millisecond), err)
}

func (r *Reconciler) readSpec(_ context.Context, s *scope) error {
	read, err := settingsOf(s.cluster)
	if err != nil {
		return flow.Stalled(ReasonInvalidSpec, err)
	}
	s.world.settings = read
	return nil
}

func (r *Reconciler) makePlan(_ context.Context, s *scope) error {
	markContested(s)
	s.plan = newPlan(s.world)
	return nil
}

// concludeUpdate makes the update revision the current one when no pod of another revision is
// left.
func (r *Reconciler) concludeUpdate(_ context.Context, s *scope) error {
	if isComplete(&s.world) {
		s.world.current = s.world.update
	}
	return nil
}
