// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

type watcher interface {
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// arrival identifies one version of an object at one of several watches.
type arrival struct {
	watch   int
	version string
}

// arrivals holds the times at which events arrived at the watches of one side.
type arrivals struct {
	mutex sync.Mutex
	at    map[arrival]time.Time
}

func (a *arrivals) count() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return len(a.at)
}

// follow stores the arrival times of the events of a watch until it is stopped.
func (a *arrivals) follow(number int, events <-chan watch.Event) {
	for event := range events {
		if object, ok := event.Object.(*corev1.ConfigMap); ok && event.Type == watch.Modified {
			now := time.Now()
			a.mutex.Lock()
			a.at[arrival{number, object.ResourceVersion}] = now
			a.mutex.Unlock()
		}
	}
}

// measureEvents watches the same objects directly and through the lens while they are written at a fixed rate.
func (r *lensed) measureEvents(ctx context.Context, sides [2]configMaps) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := [2]arrivals{{at: map[arrival]time.Time{}}, {at: map[arrival]time.Time{}}}
	var following sync.WaitGroup
	for number := range lensWatches {
		for turn := range sides {
			// The server sends an event to one watch after the other, so the sides take turns at being first.
			side := (number + turn) % len(sides)
			watching, err := sides[side].Watch(ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("watching ConfigMaps: %w", err)
			}
			defer watching.Stop()
			following.Go(func() { seen[side].follow(number, watching.ResultChan()) })
		}
	}
	events := int(lensFor.Seconds()) * lensRate
	began := time.Now()
	if err := write(ctx, sides[0], events/lensWatches, lensRate/lensWatches); err != nil {
		return err
	}
	took := time.Since(began)
	deadline := time.Now().Add(30 * time.Second)
	for seen[0].count() < events || seen[1].count() < events {
		if time.Now().After(deadline) {
			return fmt.Errorf("of %d events, %d arrived directly and %d through the lens", events, seen[0].count(), seen[1].count())
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.rate = float64(events) / took.Seconds()
	cancel()
	following.Wait()
	var added []time.Duration
	for one, direct := range seen[0].at {
		if through, ok := seen[1].at[one]; ok {
			added = append(added, through.Sub(direct))
		}
	}
	if len(added) == 0 {
		return errors.New("no event arrived at both watches")
	}
	r.events, r.added = len(added), median(added)
	return nil
}
