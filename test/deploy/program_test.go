// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/manager/command"
	"github.com/opdock/opdock/internal/testenv"
)

// TestTheProgram runs the manager as its Deployment would, with the service account of the manifests.
func TestTheProgram(t *testing.T) {
	c := fleettest.Client(t)
	applyAll(t, c, rendered(t, "config/default"))
	// The second one has the metrics read another kind of cache than that of a single namespace.
	namespace, other := clustertest.Namespace(t), clustertest.Namespace(t)
	health, metrics := freeAddress(t), freeAddress(t)
	stop := start(t, "--leader-elect", "--leader-election-namespace="+systemNamespace, "--namespaces="+namespace+","+other,
		"--health-probe-bind-address="+health, "--metrics-bind-address="+metrics)

	for _, path := range []string{"/healthz", "/readyz"} {
		testenv.Await(t, func() string {
			if status, body := get(t, "http://"+health+path, ""); status != http.StatusOK {
				return fmt.Sprintf("%s is %d: %s", path, status, body)
			}
			return ""
		})
	}
	app := fleettest.Create(t, c, namespace, "{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: web}, spec: {image: web}}", &appv1.AppService{})
	fleettest.Await(t, c, app, func(app *appv1.AppService) string { return fleettest.Ready(app.Status.Conditions, app.Generation) })

	testenv.Await(t, func() string {
		// Their server may start last.
		if status := scrape(t, metrics, ""); status != http.StatusUnauthorized {
			return fmt.Sprintf("without a token the metrics are answered with %d", status)
		}
		return ""
	})
	if status := scrape(t, metrics, token(t, c, "stranger", "")); status != http.StatusForbidden {
		t.Errorf("without the right to read them the metrics are answered with %d", status)
	}
	reader := token(t, c, "reader", "opdock-metrics-reader")
	var served string
	testenv.Await(t, func() string {
		// The manager's cache may be a moment behind.
		_, served = get(t, "https://"+metrics+"/metrics", reader)
		if count := `opdock_objects{kind="AppService",ready="True"} 1`; !strings.Contains(served, count) {
			return "there is no " + count
		}
		return ""
	})
	for _, name := range metricsInUse(t) {
		if !strings.Contains(served, "\n# TYPE "+name+" ") {
			t.Errorf("the manager has no metric %s", name)
		}
	}

	stop()
	lease := &coordinationv1.Lease{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: manager.LeaderElectionID}, lease); err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" {
		t.Errorf("%s has not released the lease", holder)
	}
}

// start runs the program with the rights of its service account. It must end without an error when it is stopped.
func start(t *testing.T, args ...string) (stop func()) {
	t.Helper()
	identity, err := clustertest.Shared(t).As(managerUser)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := identity.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var log testenv.Buffer
	exit := make(chan int, 1)
	go func() {
		exit <- command.Run(ctx, append(args, "--kubeconfig="+path), func(string) string { return "" }, &log, &log)
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if code := <-exit; code != 0 {
				t.Errorf("the program ended with exit code %d", code)
			}
			if t.Failed() {
				t.Logf("the log of the program:\n%s", &log)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

var metricName = regexp.MustCompile(`\b(opdock|controller_runtime|workqueue|rest_client|go|process|leader_election)_[a-z0-9_]+`)

// metricsInUse are the names of the metrics that the alerts and the dashboard are made of.
func metricsInUse(t *testing.T) []string {
	t.Helper()
	var expressions []string
	for _, object := range rendered(t, "config/prometheus") {
		expressions = append(expressions, under(object.Object, "expr")...)
	}
	data, err := os.ReadFile("../../config/grafana/opdock.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard unstructured.Unstructured
	if err := json.Unmarshal(data, &dashboard.Object); err != nil {
		t.Fatal(err)
	}
	expressions = append(expressions, under(dashboard.Object, "expr")...)
	var names []string
	for _, expression := range expressions {
		found := metricName.FindAllString(expression, -1)
		if len(found) == 0 {
			t.Errorf("no metric is known in %q", expression)
		}
		for _, name := range found {
			names = append(names, strings.TrimSuffix(name, "_bucket"))
		}
	}
	if len(names) < 10 {
		t.Errorf("the alerts and the dashboard use only %q", names)
	}
	return names
}

// under returns all strings with that key, however deep they are.
func under(value any, key string) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for name, below := range value {
			if text, ok := below.(string); ok && name == key {
				found = append(found, text)
			}
			found = append(found, under(below, key)...)
		}
	case []any:
		for _, below := range value {
			found = append(found, under(below, key)...)
		}
	}
	return found
}
