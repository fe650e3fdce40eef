// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice_test

import (
	"testing"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
)

func TestAnApplicationBecomesReadyWithFewWrites(t *testing.T) {
	c := fleettest.Client(t)
	namespace := clustertest.Namespace(t)
	wire, config := fleettest.NewWire(fleettest.Config(t))
	fleettest.Run(t, config, manager.Options{Namespaces: []string{namespace}})
	app := fleettest.Create(t, c, namespace, `
apiVersion: app.example.com/v1
kind: AppService
metadata: {name: web}
spec:
  size: 3
  image: nginx
  ports: [{port: 80, targetPort: 8080, nodePort: 30102}]
`, &appv1.AppService{})
	app = fleettest.Await(t, c, app, func(app *appv1.AppService) string {
		return fleettest.Ready(app.Status.Conditions, app.Generation)
	})
	t.Logf("%+v", app.Status)
	if writes := wire.AllWrites(); len(writes) > 5 {
		t.Errorf("it took %d writes: %q", len(writes), writes)
	}
}
