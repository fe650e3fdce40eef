// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

// report sets the status from the addresses and the outcome of the output. Counts alone do not cause a write: they
// are written with other changes, or after a while.
func (r *Reconciler) report(s *scope, outcome error) error {
	status := &s.collector.Status
	now := r.Clock.Now()
	r.watchers.mutex.Lock()
	defer r.watchers.mutex.Unlock()

	fingerprint := fingerprintOf(s.addresses)
	changed := setAddresses(status, s.addresses) || s.watcher.fingerprint != "" && s.watcher.fingerprint != fingerprint
	s.watcher.fingerprint, s.watcher.output = fingerprint, s.output
	if changed {
		status.LastChangeTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	changed = changed || status.ConfigMapName != s.configMap
	status.ConfigMapName = s.configMap

	if !changed && outcome != nil {
		return outcome
	}
	if !changed && isReady(s.collector) {
		uncounted := !maps.Equal(s.watcher.counts, countsOf(status.Events))
		switch due := s.watcher.uncounted.Add(countInterval); {
		case !uncounted:
			return nil
		case due.After(now):
			return flow.Hold(due.Sub(now))
		}
	}
	s.watcher.uncounted = time.Time{}
	status.Events, status.Reconciles = s.watcher.counts.events(), s.watcher.reconciles
	return outcome
}

// setAddresses puts the addresses into the status as far as they fit, and returns whether that has changed anything.
func setAddresses(status *collectorv1.CollectorStatus, addresses []collectorv1.Address) (changed bool) {
	before := status.DeepCopy()
	status.AddressCount, status.ReadyAddressCount = int32(len(addresses)), 0
	for _, address := range addresses {
		if address.Ready {
			status.ReadyAddressCount++
		}
	}
	status.Truncated = len(addresses) > collectorv1.MaxAddresses
	status.Addresses = addresses[:min(len(addresses), collectorv1.MaxAddresses)]
	return !equality.Semantic.DeepEqual(before, status)
}

// isReady reports whether the status is Ready for the current spec.
func isReady(collector *collectorv1.Collector) bool {
	ready := meta.FindStatusCondition(collector.Status.Conditions, sharedv1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == collector.Generation
}

func countsOf(events []collectorv1.EventCount) counts {
	result := counts{}
	result.add(events)
	return result
}

func fingerprintOf(addresses []collectorv1.Address) string {
	hash := sha256.New()
	for _, address := range addresses {
		owner := collectorv1.Owner{}
		if address.Owner != nil {
			owner = *address.Owner
		}
		fmt.Fprintln(hash, address.IP, address.Pod, address.Node, address.Ready, owner)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
