// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/tree"
)

// noon is the current time in these tests.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// of returns an object with owners. Its UID is its kind and name, so a test can refer to it.
func of(o tree.Object, owners ...tree.Object) tree.Object {
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	o.UID = types.UID(o.Kind + "/" + o.Namespace + "/" + o.Name)
	if o.Created.IsZero() {
		o.Created = noon.Add(-90 * time.Second)
	}
	for _, owner := range owners {
		o.Owners = append(o.Owners, owner.UID)
	}
	return o
}

// application returns a root and the objects of an AppService. ready is the number of its ready pods.
func application(name string, pods, ready int, root tree.Object) []tree.Object {
	root.Kind, root.Name, root.Fleet = "AppService", name, true
	root = of(root)
	state := tree.Good
	if ready < pods {
		state = tree.Busy
	}
	deployment := of(tree.Object{Kind: "Deployment", Name: name, State: state, Status: fmt.Sprintf("%d/%d available", ready, pods)}, root)
	set := of(tree.Object{Kind: "ReplicaSet", Name: name + "-5fd96d8c57", State: state, Status: fmt.Sprintf("%d/%d ready", ready, pods)}, deployment)
	old := of(tree.Object{Kind: "ReplicaSet", Name: name + "-0000000000", State: tree.Good, Spent: true, Created: noon.Add(-time.Hour)}, deployment)
	service := of(tree.Object{Kind: "Service", Name: name, Status: "ClusterIP 80", Detail: "at 10.96.20.83"}, root)
	objects := []tree.Object{service, old, set, deployment, root}
	for i := range pods {
		pod := tree.Object{Kind: "Pod", Name: fmt.Sprintf("%s-5fd96d8c57-%05d", name, i), State: tree.Good, Status: "Running", Detail: "on node-0"}
		if i >= ready {
			pod.State, pod.Status, pod.Detail = tree.Bad, "CrashLoopBackOff, 3 restarts", "back-off 40s restarting failed container"
		}
		objects = append(objects, of(pod, set))
	}
	return objects
}

// scene returns a fleet with objects in many states.
func scene() tree.Snapshot {
	m := tree.NewModel()
	set := func(objects ...tree.Object) {
		for _, o := range objects {
			m.Set(o)
		}
	}
	set(application("nginx-app", 2, 2, tree.Object{State: tree.Good, Status: "Ready", Detail: "size 2, available 2, http://nginx-app.default.svc"})...)
	set(application("shop", 7, 1, tree.Object{
		State: tree.Bad, Status: "Stalled", Reason: "CrashLoopBackOff",
		Message: "pod shop-5fd96d8c57-00001: CrashLoopBackOff: back-off 40s restarting failed container=app pod=shop-5fd96d8c57-00001_default(db3349ff-53b6-428a-b89a-321e57636b76)",
	})...)
	set(application("asleep", 1, 1, tree.Object{State: tree.Paused, Status: "Suspended", Message: "No object is changed while spec.suspend is set"})...)
	elsewhere := application("blog", 1, 1, tree.Object{Namespace: "team-b", State: tree.Good, Status: "Ready"})
	set(elsewhere[len(elsewhere)-2]) // only the root

	kapp := of(tree.Object{Kind: "KAPP", Name: "store", Fleet: true, State: tree.Busy, Status: "Reconciling", Reason: "ComponentsNotReady", Message: "1 of 2 components are ready; waiting for workers"})
	members := of(tree.Object{Kind: "PodCluster", Name: "store-members", Fleet: true, State: tree.Good, Status: "Ready", Detail: "replicas 3, available 3"}, kapp)
	workers := of(tree.Object{Kind: "Robot", Name: "store-workers", Fleet: true, State: tree.Busy, Status: "New", Message: "no controller has written its status yet"}, kapp)
	set(kapp, members, workers, of(tree.Object{Kind: "ControllerRevision", Name: "store-members-1", Spent: true}, members))
	for i := range 3 {
		set(of(tree.Object{Kind: "Pod", Name: fmt.Sprintf("store-members-%d", i), State: tree.Good, Status: "Running"}, members))
	}
	event := func(ago time.Duration, about tree.Object, warning bool, reason, note string, count int32) {
		m.AddEvent(tree.Event{
			UID: types.UID(reason + about.Name + ago.String()), Time: noon.Add(-ago), Warning: warning, Regarding: about.UID,
			Kind: about.Kind, Name: about.Name, Reason: reason, Note: note, Count: count,
		})
	}
	root, pod := of(tree.Object{Kind: "AppService", Name: "shop"}), func(i int) tree.Object {
		return of(tree.Object{Kind: "Pod", Name: fmt.Sprintf("shop-5fd96d8c57-%05d", i)})
	}
	event(80*time.Second, root, false, "Synced", "Created Deployment shop, Created Service shop", 1)
	event(79*time.Second, pod(0), false, "Scheduled", "Successfully assigned default/shop to node-0", 1)
	event(30*time.Second, root, true, "CrashLoopBackOff", "pod shop-5fd96d8c57-00001: CrashLoopBackOff", 1)
	event(3*time.Second, pod(1), true, "BackOff", "Back-off restarting failed container app", 12)
	event(2*time.Second, pod(2), true, "BackOff", "Back-off restarting failed container app", 11)
	event(10*time.Second, kapp, false, "Synced", "Created PodCluster store-members", 1)
	event(time.Second, of(tree.Object{Kind: "Pod", Name: "stranger"}), true, "Failed", "of no interest", 1)
	return m.Snapshot()
}

func testView() *View {
	return &View{
		Title: `cluster "dock"`, Namespace: "default", Began: noon.Add(-12 * time.Second),
		Hints: []string{"Ctrl-C ends", "try: opdock kubectl get all", "log: /state/dock/fleet.log"},
	}
}
