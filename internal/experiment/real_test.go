// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/why"
)

// TestRun makes two of the changes on a real control plane. The number of events depends on a race, so the test only
// checks what is true of every run.
func TestRun(t *testing.T) {
	config := fleettest.Config(t)
	chosen, err := ChooseChanges([]string{"delete-1", "recreate-2"})
	if err != nil {
		t.Fatal(err)
	}
	reports := 0
	prefix := clustertest.Namespace(t) + "-" // unique for each run
	result, err := Run(t.Context(), config, Options{
		Changes: chosen, Containers: []int{2}, Runs: 1, ReadyAfter: time.Second, Prefix: prefix,
		Progress: func(p Progress) {
			if reports++; p.Done != reports || p.Total != 4 || p.Message == "" {
				t.Errorf("after %d reports: %+v", reports, p)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Rows) != 2 || reports != 4 || result.Kubernetes == "" {
		t.Fatalf("%d rows after %d reports, on %q", len(result.Rows), reports, result.Kubernetes)
	}
	for i := range result.Rows {
		checkRow(t, &result.Rows[i])
	}
	checkDeletedPod(t, &result.Rows[0])
	checkStrategy(t, &result.Rows[1])
	checkContainers(t, prefix)
	if _, err := result.Page(); err != nil {
		t.Error(err)
	}
}

func checkRow(t *testing.T, row *Row) {
	t.Helper()
	for i := range row.Naive {
		m := &row.Naive[i]
		if m.Reconciles.Median > m.Events.Median || m.Writes.Median < m.Reconciles.Median {
			t.Errorf("%s, %s: %s events, %s reconciles, %s writes", row.Title, m.Controller, m.Events, m.Reconciles, m.Writes)
		}
		if i > 0 && m.Events.Median < row.Naive[i-1].Events.Median {
			t.Errorf("%s: a controller that watches more got fewer events: %s and %s", row.Title, m.Events, row.Naive[i-1].Events)
		}
	}
	app := &row.AppService
	// Each event calls the naive reconciler, unless it is busy.
	if app.Reconciles.Median == 0 || app.Reconciles.Median > row.Plain().Events.Median {
		t.Errorf("%s: the AppService is reconciled %s times, and the naive reconciler gets %s events", row.Title, app.Reconciles, row.Plain().Events)
	}
	if len(app.Seen) != app.Events.Median || app.Events.Median < len(app.Trace.Events) {
		t.Errorf("%s: of %d events, %d led to a reconcile", row.Title, len(app.Seen), len(app.Trace.Events))
	}
}

// checkDeletedPod checks the events of the deleted pod, where pods are watched.
func checkDeletedPod(t *testing.T, row *Row) {
	t.Helper()
	seen := row.Naive[len(row.Naive)-1].Trace.Events
	index := slices.IndexFunc(seen, func(e Event) bool { return e.Meaning() == "its deletion started" })
	if index < 0 {
		t.Fatalf("no pod was deleted: %+v", seen)
	}
	deleted := seen[index].Object
	if !slices.ContainsFunc(seen, func(e Event) bool { return e.Type == why.Deleted && e.Object.UID == deleted.UID }) {
		t.Errorf("%s was not deleted", deleted.Name)
	}
	if !slices.ContainsFunc(row.AppService.Seen, func(e Event) bool { return e.Type == why.Deleted && e.Object.Kind == "Pod" }) {
		t.Error("no pod of the AppService was deleted")
	}
}

// checkStrategy checks the exact events, because a change of the strategy always has the same ones.
func checkStrategy(t *testing.T, row *Row) {
	t.Helper()
	for i := range row.Naive {
		trace := &row.Naive[i].Trace
		if got, want := meaningsOnly(trace), []string{"the change itself", "the new spec was observed"}; !slices.Equal(got, want) {
			t.Errorf("%s saw %q", row.Naive[i].Controller, got)
		}
		for j, writer := range []string{fieldOwner, "kube-controller-manager"} {
			if got := trace.Events[j].Writers(); got != writer {
				t.Errorf("event %d was written by %q", j, got)
			}
		}
	}
	first := row.AppService.Trace.Events[0]
	if first.Object.Kind != "AppService" || first.Writers() != fieldOwner {
		t.Errorf("the AppService was reconciled because of %s: %s", first.Subject(), first.Meaning())
	}
}

func meaningsOnly(trace *Trace) (all []string) {
	for i := range trace.Events {
		all = append(all, trace.Events[i].Meaning())
	}
	return all
}

func checkContainers(t *testing.T, prefix string) {
	t.Helper()
	for _, namespace := range []string{prefix + "naive-2", prefix + "appservice-2"} {
		var pods corev1.PodList
		if err := fleettest.Client(t).List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) != 2 || len(pods.Items[0].Spec.Containers) != 2 {
			t.Errorf("namespace %s has %d pods", namespace, len(pods.Items))
		}
	}
}
