// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/testenv"
)

var (
	environment *envtest.Environment
	// k8s reads from the API server itself and can watch.
	k8s client.WithWatch
)

func TestMain(m *testing.M) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		// go test shows the first line beside the package's name, and the second with -v only.
		fmt.Println("testing: warning: no tests to run")
		fmt.Println("KUBEBUILDER_ASSETS is not set: the tests of package e2e run these with those of Opdock")
		os.Exit(0)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	log.SetLogger(logr.Discard())
	// The port that envtest would choose is one that the system also gives to outgoing connections. On a busy machine, one
	// of them may take it before the manager does.
	port, err := freeport.Find()
	if err != nil {
		return 0, err
	}
	environment = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("testdata", "crds")},
		ErrorIfCRDPathMissing: true,
		// The defaults are 20 seconds for processes and 10 for CRDs.
		ControlPlaneStartTimeout: testenv.Patience,
		ControlPlaneStopTimeout:  testenv.Patience,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: testenv.Patience},
		WebhookInstallOptions:    envtest.WebhookInstallOptions{Paths: []string{filepath.Join("testdata", "webhooks")}, LocalServingHost: "127.0.0.1", LocalServingPort: port},
	}
	config, err := environment.Start()
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopErr := environment.Stop(); err == nil {
			err = stopErr
		}
	}()
	all := runtime.NewScheme()
	if err := scheme.AddToScheme(all); err != nil {
		return 0, err
	}
	addToScheme(all)
	if k8s, err = client.NewWithWatch(config, client.Options{Scheme: all}); err != nil {
		return 0, err
	}

	hooks := environment.WebhookInstallOptions
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  all,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir,
		}),
	})
	if err != nil {
		return 0, err
	}
	if err := (&reconciler{manager.GetClient()}).setUp(manager); err != nil {
		return 0, err
	}
	if err := ctrl.NewWebhookManagedBy(manager, &Greeting{}).WithValidator(validator{}).Complete(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := manager.Start(ctx)
		if ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "the manager ended:", err) // what tests wait for does not come
		}
		ended <- err
	}()
	code = m.Run()
	cancel()
	return code, <-ended
}

// newNamespace makes a namespace and leaves it: without controllers none ever goes.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := k8s.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}
