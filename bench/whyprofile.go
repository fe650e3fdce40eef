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

// profiled is for how long a profile is taken of a manager that records, while AppServices are created all the time.
const profiled = 3 * time.Minute

// whyProfile is where the CPU time of a manager that records goes.
type whyProfile struct {
	all, recorder, collector time.Duration
	samples                  int
	reconciles               uint64
}

// share is that of the recorder, with its part of what the garbage collector does on the side: as if all the time of a
// program caused the same garbage.
func (w whyProfile) share() float64 { return ratio(w.recorder, max(1, w.all-w.collector)) }

// each is what recording takes for a reconcile, with the events that led to it, which are recorded before it begins.
func (w whyProfile) each() time.Duration {
	return time.Duration(w.share() * float64(w.all) / float64(max(1, w.reconciles)))
}

// profileWhy runs a manager that records and looks where it spends its time. Other than a comparison with one that does not
// record, this does not depend on how fast the machine is in which minute.
func profileWhy(ctx context.Context, e environment, program string) (found whyProfile, err error) {
	say("A profile of recording, %s long", profiled)
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
		creating, enough := context.WithCancel(ctx)
		created := make(chan error, 1)
		go func() { created <- f.keepCreating(creating) }()
		taken, err := takeProfile(ctx, profiles, profiled)
		enough()
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

// keepCreating creates AppServices until it is told to stop, always as many more as are measured otherwise, each time in a
// namespace of their own.
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

// readWhyProfile adds up the samples by whom they belong to.
func readWhyProfile(taken *profile.Profile) (found whyProfile) {
	value := len(taken.SampleType) - 1 // nanoseconds; the one before counts samples
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
	whyBuilder        = whyPackage + "(*Builder)." // does what controller-runtime's builder does, recording or not
	collectorFunction = "runtime.gcBgMarkWorker"
)

// owners are those who may be called by a recorder, or call it, and whose time is their own.
var owners = []string{whyBuilder, whyPackage, collectorFunction, "github.com/opdock/opdock/", "sigs.k8s.io/controller-runtime/", "k8s.io/client-go/"}

// owner is whose time a sample is: the one of the owners who is nearest to where the program was. What the recorder wraps is
// called by it and yet not its own, and what it calls in other libraries is.
func owner(sample *profile.Sample) string {
	for _, location := range sample.Location { // the innermost first
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
