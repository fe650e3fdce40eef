// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	robotv1 "github.com/opdock/opdock/api/robot/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/why"
)

// TestFleetRecordsWhy looks at all kinds at work with a recorder: each reconcile has known causes, and those of a user's change
// say what it was and whose.
func TestFleetRecordsWhy(t *testing.T) {
	config := fleettest.Config(t)
	namespace := clustertest.Namespace(t)
	recorder := why.New(why.Options{})
	fleettest.Run(t, config, manager.Options{Namespaces: []string{namespace}, Why: recorder})
	user := client.WithFieldOwner(fleettest.Client(t), "somebody")

	app := fleettest.Create(t, user, namespace, "{metadata: {name: web}, spec: {size: 1, image: web, ports: [{port: 80}]}}", &appv1.AppService{})
	robot := fleettest.Create(t, user, namespace, "{metadata: {name: r2}, spec: {deploymentName: r2, replicas: 1}}", &robotv1.Robot{})
	fleettest.Create(t, user, namespace, "{metadata: {name: ring}, spec: {podReplicas: 2}}", &kubegroupv1.PodCluster{})
	fleettest.Create(t, user, namespace, "{metadata: {name: ips}, spec: {selector: {}}}", &collectorv1.Collector{})
	fleettest.Create(t, user, namespace, `
metadata: {name: whole}
spec:
  components:
  - name: part
    resource: {apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {name: part}, spec: {deploymentName: part, replicas: 1}}
`, &kappv1.KAPP{})
	for _, kind := range []string{"AppService", "Robot", "PodCluster", "Collector", "KAPP"} {
		await(t, recorder, kind, func(r *why.Record) bool { return r.Written > 0 })
	}
	fleettest.Await(t, user, app, func(app *appv1.AppService) string { return fleettest.Ready(app.Status.Conditions, app.Generation) })
	fleettest.Await(t, user, robot, func(robot *robotv1.Robot) string { return fleettest.Ready(robot.Status.Conditions, robot.Generation) })

	if err := user.Patch(t.Context(), app, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"size": 2}}`))); err != nil {
		t.Fatal(err)
	}
	r := await(t, recorder, "AppService", caused("spec.size 1→2 by somebody"))
	if len(r.Writes) == 0 || r.Writes[0].Object.Kind != "Deployment" || r.Writes[0].Object.UID == "" {
		t.Errorf("it wrote %+v", r.Writes)
	}
	// It is unknown who removes a label; it is certainly not the manager that applied it.
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	patch := `{"metadata": {"labels": {"app.kubernetes.io/name": null}}}`
	if err := user.Patch(t.Context(), deployment, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	await(t, recorder, "AppService", caused(`metadata.labels[app.kubernetes.io/name] "appservice"→ by an unknown writer`))
	// The Deployment's controller is known by name, although the cache keeps nothing else of what it wrote.
	await(t, recorder, "AppService", caused("by kube-controller-manager (status)"))
	// A component's news leads to its application, whose reconcile knows that another one wrote them.
	await(t, recorder, "KAPP", func(r *why.Record) bool {
		for i := range r.Causes {
			if c := &r.Causes[i]; c.Object != nil && c.Object.Kind == "Robot" && c.Object.Name == "part" && c.Type == why.Updated {
				return true
			}
		}
		return false
	})
	for _, record := range recorder.Records(why.Query{Limit: 1000}) {
		for i := range record.Causes {
			if record.Causes[i].Type == why.Unknown {
				t.Errorf("the cause of record %d of %s %s is unknown", record.ID, record.Object.Kind, record.Object.Name)
			}
		}
	}
}

func caused(text string) func(*why.Record) bool {
	return func(r *why.Record) bool {
		for i := range r.Causes {
			if strings.Contains(r.Causes[i].String(), text) {
				return true
			}
		}
		return false
	}
}

// await returns the first record of a kind that is as wanted.
func await(t *testing.T, recorder *why.Recorder, kind string, wanted func(*why.Record) bool) (found *why.Record) {
	t.Helper()
	testenv.Await(t, func() string {
		for _, record := range recorder.Records(why.Query{Kind: kind, Limit: 1000}) {
			if wanted(record) {
				found = record
				return ""
			}
		}
		return "no such reconcile of a " + kind
	})
	return found
}
