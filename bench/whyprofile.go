// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opdock/opdock/internal/freeport"
)

// profiled is how long a manager that records is profiled, while AppServices are created all the time.
const profiled = 3 * time.Minute

// whyProfile is the CPU time of a manager that records, by owner.
type whyProfile struct {
	all, recorder, collector time.Duration
	samples                  int
	reconciles               uint64
}

// share returns the share of the recorder, including its part of concurrent garbage collection. It assumes that all
// code causes garbage in proportion to its CPU time.
func (w whyProfile) share() float64 { return ratio(w.recorder, max(1, w.all-w.collector)) }

// each returns the CPU time of recording per reconcile. It includes recording the events that caused the reconcile.
func (w whyProfile) each() time.Duration {
	return time.Duration(w.share() * float64(w.all) / float64(max(1, w.reconciles)))
}

// profileWhy profiles a manager that records. Unlike a comparison of two managers, a profile does not depend on how
// the speed of the machine varies.
func profileWhy(ctx context.Context, e environment, program string) (found whyProfile, err error) {
	say("Recorder: profile of %s", profiled)
	err = withFleet(ctx, e, program, "why-profile", func(f *fleet) error {
		if err := f.stop(); err != nil {
			return err
		}
		records, err := freeport.Address()
		if err != nil {
			return err
		}
		profiles, err := freeport.Address()
		if err != nil {
			return err
		}
		f.arguments = []string{"--why-bind-address", records, "--pprof-bind-address", profiles}
		if err := f.startReady(ctx); err != nil {
			return err
		}
		createContext, stopCreating := context.WithCancel(ctx)
		created := make(chan error, 1)
		go func() { created <- f.keepCreating(createContext) }()
		taken, err := takeProfile(ctx, profiles, profiled)
		stopCreating()
		if err := errors.Join(err, <-created); err != nil {
			return err
		}
		found = readWhyProfile(taken)
		families, err := f.scrape(ctx)
		if err != nil {
			return err
		}
		found.reconciles, _ = reconcilesOf(families, "")
		if found.samples == 0 {
			return errors.New("the profile of the manager is empty")
		}
		return nil
	})
	return found, err
}

// keepCreating creates batches of whySize AppServices until ctx is done, each in a new namespace.
func (f *fleet) keepCreating(ctx context.Context) error {
	for batch := 0; ctx.Err() == nil; batch++ {
		f.namespace = fmt.Sprintf("batch-%d", batch)
		err := f.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
		if err == nil {
			_, err = f.createAppServices(ctx, whySize, appName)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func takeProfile(ctx context.Context, address string, lasting time.Duration) (*profile.Profile, error) {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", address, int(lasting.Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("taking a profile: %s", response.Status)
	}
	return profile.Parse(response.Body)
}

// readWhyProfile adds up the samples by owner.
func readWhyProfile(taken *profile.Profile) (found whyProfile) {
	value := len(taken.SampleType) - 1 // nanoseconds; the value before it is the number of samples
	for _, sample := range taken.Sample {
		took := time.Duration(sample.Value[value])
		found.all += took
		found.samples += int(sample.Value[0])
		switch owner(sample) {
		case whyPackage:
			found.recorder += took
		case collectorFunction:
			found.collector += took
		}
	}
	return found
}

const (
	whyPackage        = "github.com/opdock/opdock/why."
	whyBuilder        = whyPackage + "(*Builder)." // works like controller-runtime's builder, with or without a recorder
	collectorFunction = "runtime.gcBgMarkWorker"
)

// owners are the prefixes of functions that a sample can belong to. The recorder may call them or be called by them.
var owners = []string{whyBuilder, whyPackage, collectorFunction, "github.com/opdock/opdock/", "sigs.k8s.io/controller-runtime/", "k8s.io/client-go/"}

// owner returns the owner of the innermost function of a sample that has one. So the code that the recorder wraps is
// not counted for the recorder, but the libraries that it calls are.
func owner(sample *profile.Sample) string {
	for _, location := range sample.Location { // innermost first
		for _, line := range location.Line {
			for _, one := range owners {
				if line.Function != nil && strings.HasPrefix(line.Function.Name, one) {
					return one
				}
			}
		}
	}
	return ""
}

func writeWhyProfile(p printer, w whyProfile) {
	p("\nA profile of a manager that records while AppServices are created for %s has %d samples, %s of CPU time. The", profiled, w.samples, ms(w.all))
	p("recorder takes %s, and concurrent garbage collection %s. Including its share of garbage collection, recording takes", ms(w.recorder), ms(w.collector))
	p("%.1f %% of the manager's CPU time: %s for each of %d reconciles, with the events that caused it.", 100*w.share(), us(w.each()), w.reconciles)
}
