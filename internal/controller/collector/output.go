// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	"github.com/opdock/opdock/internal/flow"
)

const (
	// KeyIPs holds every address once, one in each line.
	KeyIPs = "ips.txt"
	// KeyAddresses holds the addresses with their pods, as in the status, as JSON.
	KeyAddresses = "addresses.json"

	// maxData is how much data a ConfigMap can hold.
	maxData = corev1.MaxSecretSize

	// ReasonOutputTooLarge means that the addresses do not fit into a ConfigMap. The ConfigMap stays as it was, since a
	// part of the list would look like all of it.
	ReasonOutputTooLarge = "OutputTooLarge"
)

// writeOutput applies the ConfigMap that the spec names, and deletes those that it named before.
func (r *Reconciler) writeOutput(ctx context.Context, s *scope) error {
	var owned corev1.ConfigMapList
	if err := s.pass.Owned(ctx, &owned); err != nil {
		return err
	}
	s.configMap = s.collector.Status.ConfigMapName
	name := ""
	if output := s.collector.Spec.Output; output != nil {
		name = output.ConfigMapName
		if err := r.writeConfigMap(ctx, s, name, owned.Items); err != nil {
			return err
		}
	}
	s.configMap = name
	if old := s.collector.Status.ConfigMapName; old != "" && old != name &&
		!slices.ContainsFunc(owned.Items, func(c corev1.ConfigMap) bool { return c.Name == old }) {
		var hidden corev1.ConfigMap
		if found, err := s.pass.Hidden(ctx, &hidden, old); err != nil {
			return err
		} else if found {
			owned.Items = append(owned.Items, hidden)
			s.configMap = old // until it is deleted: only the status records it
		}
	}
	var outcome error
	for i := range owned.Items {
		if owned.Items[i].Name == name {
			continue
		}
		if err := s.pass.Remove(ctx, owned.Items[i].DeepCopy()); err != nil && !flow.IsWaiting(err) {
			return err
		} else if err != nil {
			outcome = err
		}
	}
	if outcome == nil {
		s.configMap = name
	}
	return outcome
}

// writeConfigMap keeps an old ConfigMap up to date while the name of the new one is taken, because readers of the
// list have nothing better.
func (r *Reconciler) writeConfigMap(ctx context.Context, s *scope, name string, owned []corev1.ConfigMap) error {
	data, err := output(s.addresses, maxData)
	if err != nil {
		s.configMap = ""
		return err
	}
	outcome := s.pass.Apply(ctx, &corev1.ConfigMap{}, corev1ac.ConfigMap(name, s.collector.Namespace).WithData(data))
	if flow.Reason(outcome) != flow.ReasonResourceExists {
		if outcome == nil {
			s.output = data
		}
		return outcome
	}
	old := s.collector.Status.ConfigMapName
	if old == name || !slices.ContainsFunc(owned, func(c corev1.ConfigMap) bool { return c.Name == old }) {
		s.configMap = ""
		return outcome
	}
	if err := s.pass.Apply(ctx, &corev1.ConfigMap{}, corev1ac.ConfigMap(old, s.collector.Namespace).WithData(data)); err != nil {
		return err
	}
	return outcome
}

// restoreOutput restores the last written content of the ConfigMap. While pods keep changing, the list is not
// updated, but drift is corrected.
func (r *Reconciler) restoreOutput(ctx context.Context, s *scope, data map[string]string) error {
	if data == nil || s.collector.Spec.Output == nil {
		return nil
	}
	return s.pass.Apply(ctx, &corev1.ConfigMap{}, corev1ac.ConfigMap(s.collector.Spec.Output.ConfigMapName, s.collector.Namespace).WithData(data))
}

// output returns the content of the ConfigMap. If it does not fit, the details are omitted. If the addresses
// alone do not fit, it is an error.
func output(addresses []collectorv1.Address, limit int) (map[string]string, error) {
	var text strings.Builder
	last := ""
	for _, address := range addresses {
		if address.IP != last {
			text.WriteString(address.IP + "\n")
		}
		last = address.IP
	}
	if text.Len() > limit {
		return nil, flow.Stalled(ReasonOutputTooLarge, fmt.Errorf(
			"the list of %d addresses has %d bytes, but a ConfigMap holds at most %d: select fewer pods, for example with several Collectors",
			len(addresses), text.Len(), limit))
	}
	data := map[string]string{KeyIPs: text.String()}
	if addresses == nil {
		addresses = []collectorv1.Address{}
	}
	details, err := json.Marshal(addresses)
	if err != nil {
		return nil, fmt.Errorf("encoding the addresses: %w", err)
	}
	if text.Len()+len(details) <= limit {
		data[KeyAddresses] = string(details)
	}
	return data, nil
}
