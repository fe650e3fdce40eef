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

// arrivals are when the versions of objects arrived at a watch.
type arrivals struct {
	mutex sync.Mutex
	at    map[string]time.Time
}

func (a *arrivals) count() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return len(a.at)
}

// follow notes events until the watch is stopped.
func (a *arrivals) follow(events <-chan watch.Event) {
	for event := range events {
		if object, ok := event.Object.(*corev1.ConfigMap); ok && event.Type == watch.Modified {
			a.mutex.Lock()
			a.at[object.ResourceVersion] = time.Now()
			a.mutex.Unlock()
		}
	}
}

// measureEvents watches the same objects directly and through the lens while they are written at a rate.
func (r *lensed) measureEvents(ctx context.Context, sides [2]maps) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var seen [2]arrivals
	var following sync.WaitGroup
	for side := range sides {
		watching, err := sides[side].Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("watching ConfigMaps: %w", err)
		}
		defer watching.Stop()
		seen[side].at = map[string]time.Time{}
		following.Go(func() { seen[side].follow(watching.ResultChan()) })
	}
	count := int(lensFor.Seconds()) * lensRate
	began := time.Now()
	if err := write(ctx, sides[0], count, lensRate); err != nil {
		return err
	}
	r.rate = float64(count) / time.Since(began).Seconds()
	deadline := time.Now().Add(30 * time.Second)
	for seen[0].count() < count || seen[1].count() < count {
		if time.Now().After(deadline) {
			return fmt.Errorf("of %d events, %d arrived directly and %d through the lens", count, seen[0].count(), seen[1].count())
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	following.Wait()
	var added []time.Duration
	for version, direct := range seen[0].at {
		if through, ok := seen[1].at[version]; ok {
			added = append(added, through.Sub(direct))
		}
	}
	if len(added) == 0 {
		return errors.New("no event arrived at both watches")
	}
	r.events, r.added = len(added), median(added)
	return nil
}
