// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/opdock/opdock/why"
)

// newRecorder returns the recorder for the settings, nil if recording is off, and a function that ends it.
func newRecorder(ctx context.Context, s *settings, logger logr.Logger) (recorder *why.Recorder, end func(), err error) {
	end = func() {}
	if s.whyAddress == off && s.traces == noTraces {
		return nil, end, nil
	}
	options := why.Options{Logger: logger.WithName("why")}
	if s.metricsAddress != off {
		options.Registerer = metrics.Registry
	}
	if s.traces != noTraces {
		if options.TracerProvider, end, err = newTracerProvider(ctx, s.traces, logger.WithName("traces")); err != nil {
			return nil, nil, err
		}
	}
	return why.New(options), end, nil
}

// whyServer serves the records on the same machine, or in the same pod. kubectl port-forward reaches it
// with the API server's authorization.
type whyServer struct {
	address  string
	recorder *why.Recorder
	log      logr.Logger
}

// NeedLeaderElection returns false: all instances serve records, not only the leader.
func (s *whyServer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *whyServer) Start(ctx context.Context) error {
	s.log.Info("Serving reconcile records", "address", "http://"+s.address+"/why/summary")
	return s.recorder.Serve(ctx, s.address)
}
