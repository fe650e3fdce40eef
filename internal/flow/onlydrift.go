// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HasOnlyDrifted reports whether a child that Applied has found was applied with this very configuration, so Apply would
// only correct what other writers have changed since, which may be the owner reference.
func (p *Pass) HasOnlyDrifted(object client.Object, configuration any) (bool, error) {
	desired, err := p.complete(configuration)
	if err != nil {
		return false, err
	}
	hasDrifted := func() bool {
		if !metav1.IsControlledBy(object, p.owner) {
			return p.isAdoptable(object)
		}
		return !p.drift(object, desired).none()
	}
	return object.GetUID() != "" && object.GetDeletionTimestamp().IsZero() && desired.isAppliedTo(object) && stuck(object, desired) == nil && hasDrifted(), nil
}
