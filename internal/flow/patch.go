// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch changes a child by a JSON merge patch, for what applying cannot do. The object is one that Find found.
func (p *Pass) Patch(ctx context.Context, object client.Object, difference string) error {
	patch, err := forObject(object, []byte(difference))
	if err != nil {
		return fmt.Errorf("patching %s: %w", describe(object, object.GetName()), err)
	}
	if err := p.write(object, object.GetName(), func() error { return p.client.Patch(ctx, object, patch, client.FieldOwner(p.fieldOwner)) }); err != nil {
		return Refused(fmt.Errorf("patching %s: %w", describe(object, object.GetName()), err))
	}
	return nil
}
