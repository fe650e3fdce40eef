// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	reconciles = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "opdock_reconciles_total",
		Help: "Total number of reconciles, by kind and outcome: ready, waiting, stalled, held, suspended, deleted or failed.",
	}, []string{"kind", "outcome"})

	timeToReady = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "opdock_time_to_ready_seconds",
		Help:    "Time from a change of the spec, or the creation of the object, until the object is ready.",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800},
	}, []string{"kind"})
)

func init() {
	metrics.Registry.MustRegister(reconciles, timeToReady)
}
