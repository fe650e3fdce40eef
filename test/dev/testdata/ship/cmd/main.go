// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// The operator of ships.
package main

import (
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	v1 "example.com/ship/api/v1"
	"example.com/ship/internal/controller"
)

func main() {
	metrics := flag.String("metrics-bind-address", ":8443", "where metrics are")
	probe := flag.String("health-probe-bind-address", ":8081", "where probes are")
	elect := flag.Bool("leader-elect", true, "elect a leader")
	port := flag.Int("webhook-port", 9443, "where webhooks are")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*metrics, *probe, *elect, *port); err != nil {
		fmt.Fprintln(os.Stderr, "it cannot go on:", err)
		os.Exit(1)
	}
}

func run(metrics, probe string, elect bool, port int) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := v1.AddToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: metrics}, HealthProbeBindAddress: probe,
		LeaderElection: elect, LeaderElectionID: "ship", LeaderElectionNamespace: "default", WebhookServer: webhook.NewServer(webhook.Options{Port: port}),
	})
	if err != nil {
		return err
	}
	if err := controller.Setup(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
